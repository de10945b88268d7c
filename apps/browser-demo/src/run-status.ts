import type { Run, RunStatus } from '@coji/durably'
import { formatCountdown } from './format'

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

/** How long it took, or has been under way, since it began. */
export function durationOf({ startedAt, finishedAt }: Run, now: number): number | null {
  if (startedAt === null) return null
  const end = finishedAt === null ? now : Date.parse(finishedAt)
  return Math.max(0, end - Date.parse(startedAt))
}

/** Until a run that waits may start; `null` for one that does not wait for a time. */
export function msUntilDue({ status, waitingFor, availableAt }: Run, now: number): number | null {
  if (status !== 'pending' || waitingFor?.kind === 'unpark' || availableAt === null) return null
  const ms = Date.parse(availableAt) - now
  return ms > 0 ? ms : null
}

/** Why nobody executes the run at the moment, and for how long; `null` when there is nothing to say. */
export function waitText(run: Run, now: number): string | null {
  const { status, waitingFor, crashCount, startedAt } = run
  if (status !== 'pending') return null
  if (waitingFor?.kind === 'unpark') return `Put aside: ${waitingFor.reason}`
  const ms = msUntilDue(run, now)
  if (ms !== null) return `${reasonOf(run)} in ${formatCountdown(ms)}.`
  if (waitingFor?.kind === 'steps' && run.availableAt === null) return `Waits for ${waitingFor.steps.join(', ')}.`
  if (crashCount > 0) return 'Its worker is gone. The next one goes on after the last stored step.'
  return startedAt === null ? 'Waits for its turn.' : 'Waits for a worker to go on.'
}

function reasonOf({ waitingFor, crashCount, attempt, startedAt }: Run): string {
  if (waitingFor?.kind === 'retry') return `It failed. Attempt ${attempt} begins`
  if (waitingFor?.kind === 'steps') return `Waits for ${waitingFor.steps.join(', ')}, and goes on at the latest`
  if (crashCount > 1) return `It lost its worker ${crashCount} times in a row. It goes on`
  return startedAt === null ? 'Starts' : 'Goes on'
}

/** The end of an id tells runs apart; its beginning is their time. */
export function shortId(id: string): string {
  return id.slice(-6)
}
