import { ENDED_STATUSES, type Run, RUN_STATUSES, type RunStatus } from '@coji/durably'

/** What can be done to runs by hand. */
export interface Change {
  readonly name: 'retry' | 'cancel'
  /** Those that it can be done to. */
  readonly statuses: readonly RunStatus[]
  /** What has become of a run. */
  readonly after: (run: Run) => string
}

export const CHANGES = {
  retry: {
    name: 'retry',
    statuses: ENDED_STATUSES.filter((status) => status !== 'completed'),
    after: () => 'starts again; its completed steps stay.',
  },
  cancel: {
    name: 'cancel',
    statuses: RUN_STATUSES.filter((status) => !ENDED_STATUSES.some((ended) => ended === status)),
    after: ({ status }) =>
      status === 'cancelled' ? 'is cancelled.' : 'was asked to cancel; its worker hears of it within seconds.',
  },
} as const satisfies Record<string, Change>
