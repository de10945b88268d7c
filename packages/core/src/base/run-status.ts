/** Every state that a run can be in; `LIFECYCLE` says how it gets from one into another. */
export const RUN_STATUSES = [
  'pending',
  'assigned',
  'running',
  'completed',
  'failed',
  'timed_out',
  'cancelled',
  'orphaned',
] as const

/** Where a run is in its life. */
export type RunStatus = (typeof RUN_STATUSES)[number]

/** A run in one of these changes only through `retry()`, `deleteRun()` or `purge()`. */
export const ENDED_STATUSES = ['completed', 'failed', 'timed_out', 'cancelled'] as const satisfies readonly RunStatus[]

/** A status in which a run is over. */
export type EndedStatus = (typeof ENDED_STATUSES)[number]

/** Whether a run of this status is over. */
export function isEnded(status: RunStatus): status is EndedStatus {
  return (ENDED_STATUSES as readonly RunStatus[]).includes(status)
}
