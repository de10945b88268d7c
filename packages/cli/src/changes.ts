import { ENDED_STATUSES, type Run, RUN_STATUSES, type RunFilter, type RunStatus } from '@coji/durably'

/** What can be done to runs by hand. */
export interface Change {
  readonly name: 'retry' | 'cancel' | 'unpark'
  readonly call: 'retry' | 'cancel' | 'unpark' | 'failParked'
  /** Those that it can be done to: of these statuses, */
  readonly statuses: readonly RunStatus[]
  /** and waiting for this. */
  readonly waitsFor?: NonNullable<RunFilter['waitsFor']>
  /** In words, after "durably retry takes a run that is". */
  readonly fitting: string
  /** What has become of a run. */
  readonly after: (run: Run) => string
  /** The same of several, or of one. */
  readonly afterMany: (isOne: boolean) => string
}

const RETRIED = ENDED_STATUSES.filter((status) => status !== 'completed')
const CANCELLED = RUN_STATUSES.filter((status) => !ENDED_STATUSES.some((ended) => ended === status))

const unpark = { name: 'unpark', statuses: ['pending'], waitsFor: 'unpark', fitting: 'parked' } as const

export const CHANGES = {
  retry: {
    ...{ name: 'retry', call: 'retry', statuses: RETRIED, fitting: RETRIED.join(', ') },
    after: () => 'starts again; its completed steps stay.',
    afterMany: (isOne) => `${isOne ? 'starts' : 'start'} again; completed steps stay.`,
  },
  cancel: {
    ...{ name: 'cancel', call: 'cancel', statuses: CANCELLED, fitting: CANCELLED.join(', ') },
    after: ({ status }) =>
      status === 'cancelled' ? 'is cancelled.' : 'was asked to cancel; its worker hears of it within seconds.',
    afterMany: (isOne) => `${isOne ? 'was' : 'were'} cancelled, or asked to.`,
  },
  unpark: {
    ...{ ...unpark, call: 'unpark' },
    after: () => 'goes on as soon as a worker is free.',
    afterMany: (isOne) => `${isOne ? 'goes' : 'go'} on as soon as workers are free.`,
  },
  failParked: {
    ...{ ...unpark, call: 'failParked' },
    after: () => 'is failed.',
    afterMany: (isOne) => `${isOne ? 'is' : 'are'} failed.`,
  },
} as const satisfies Record<string, Change>

export function fits({ statuses, waitsFor }: Change, { status, waitingFor }: Run): boolean {
  return statuses.includes(status) && (waitsFor === undefined || waitingFor?.kind === waitsFor)
}
