import type { Run, RunStatus } from '@coji/durably'

/** How each status reads. */
export const STATUS_TEXT: Readonly<Record<RunStatus, string>> = {
  pending: 'waiting',
  assigned: 'assigned',
  orphaned: 'unassigned',
  running: 'running',
  completed: 'completed',
  failed: 'failed',
  timed_out: 'timed out',
  cancelled: 'cancelled',
}

export function statusText({ status, cancelRequestedAt, waitingFor }: Run): string {
  if (status === 'running' && cancelRequestedAt !== null) return 'cancelling'
  if (status === 'pending' && waitingFor?.kind === 'unpark') return 'parked'
  return STATUS_TEXT[status]
}

export function canCancel({ status, cancelRequestedAt }: Run): boolean {
  return (status === 'pending' || status === 'running') && cancelRequestedAt === null
}

export function canRetry({ status }: Run): boolean {
  return status === 'failed' || status === 'timed_out' || status === 'cancelled'
}

/** From 0 to 1; `null` when the run has not said. */
export function shareOf({ status, progress }: Run): number | null {
  if (status === 'completed') return 1
  if (progress?.total === undefined || progress.total === 0) return null
  return Math.min(1, progress.current / progress.total)
}

/** The end of an id tells runs apart; its beginning is their time. */
export function shortId(id: string): string {
  return id.slice(-6)
}
