import type { Run } from '@coji/durably-core'

/** How something stands, for its colour: never the only sign of it. */
export type Tone = 'quiet' | 'active' | 'good' | 'warn' | 'bad'

export interface StatusWords {
  readonly label: string
  readonly tone: Tone
}

const WORDS: Readonly<Record<Run['status'], StatusWords>> = {
  pending: { label: 'Pending', tone: 'quiet' },
  assigned: { label: 'Assigned', tone: 'quiet' },
  running: { label: 'Running', tone: 'active' },
  completed: { label: 'Completed', tone: 'good' },
  failed: { label: 'Failed', tone: 'bad' },
  timed_out: { label: 'Timed out', tone: 'bad' },
  cancelled: { label: 'Cancelled', tone: 'warn' },
  orphaned: { label: 'Orphaned', tone: 'warn' },
}

/** What people call the status of a run, and of a pending one what it waits for. */
export function statusOf({ status, waitingFor, cancelRequestedAt, startedAt }: Run): StatusWords {
  if (status === 'running' && cancelRequestedAt !== null) return { label: 'Cancelling', tone: 'warn' }
  if (status !== 'pending') return WORDS[status]
  if (waitingFor?.kind === 'unpark') return { label: 'Parked', tone: 'warn' }
  if (waitingFor?.kind === 'retry') return { label: 'Retrying', tone: 'warn' }
  if (waitingFor?.kind === 'steps') return { label: 'Waiting', tone: 'quiet' }
  return startedAt === null ? WORDS.pending : { label: 'Pending again', tone: 'quiet' }
}

export function hasEnded({ finishedAt }: Run): boolean {
  return finishedAt !== null
}

/** What can be done to a run as it stands. */
export const CAN = {
  cancel: (run: Run) => !hasEnded(run) && run.cancelRequestedAt === null,
  retry: ({ status }: Run) => status === 'failed' || status === 'timed_out' || status === 'cancelled',
  delete: hasEnded,
  signal: (run: Run) => !hasEnded(run),
  unpark: ({ status, waitingFor }: Run) => status === 'pending' && waitingFor?.kind === 'unpark',
} as const

/** From its first start to its end; `null` before. */
export function durationOf({ startedAt, finishedAt }: Run, now: number): number | null {
  if (startedAt === null) return null
  return Math.max(0, (finishedAt === null ? now : Date.parse(finishedAt)) - Date.parse(startedAt))
}

/** How far it says it is, from 0 to 1. */
export function shareOf({ progress }: Run): number | null {
  if (progress?.total === undefined || progress.total <= 0) return null
  return Math.min(1, Math.max(0, progress.current / progress.total))
}
