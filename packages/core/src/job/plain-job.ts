import type { StepLog } from './step-options'

/** An attempt of a plain job, as its function sees it. */
export interface PlainAttempt {
  readonly runId: string
  /** 1 at first; executions that ended with their worker count. */
  readonly tries: number
  readonly signal: AbortSignal
  readonly log: StepLog
  /** When it began, by the monotonic clock. */
  readonly begunAt: number
}

/** What a job without steps, waits, output and deadline does. */
export interface PlainBody {
  /** Begins an attempt. It is over when what this returns has settled. */
  begin(attempt: PlainAttempt, payload: unknown): unknown
  /** It succeeded, and that is stored. */
  succeeded(runId: string): void
  /** What it came to will never be stored; somebody begins the run again when its lease is over. */
  givenUp(runId: string): void
}
