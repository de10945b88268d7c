import type { RetryPolicy } from './retry'
import type { StandardSchema } from '../base'

/** Writes log lines of a run. */
export interface StepLog {
  info(message: string, data?: unknown): void
  warn(message: string, data?: unknown): void
  error(message: string, data?: unknown): void
}

/** What the body of a step gets. */
export interface StepTools {
  /** Aborts when the run is cancelled, times out, is lost to another worker or has to stop here, or the try took too long. */
  readonly signal: AbortSignal
  /** 1 at first; counts the recorded failures of this step. */
  readonly attempt: number
  /** What `save` stored last, also in an earlier process; `undefined` at first. */
  readonly checkpoint: unknown
  /** Stores where the body is, so that the next start can go on from there. */
  save(checkpoint: unknown): Promise<void>
  /**
   * The same for every start of this step of this run, and of no other: hand it to services that know idempotency keys.
   * Fit for an HTTP header: of the name, what is not visible ASCII is percent-encoded.
   */
  readonly idempotencyKey: string
  readonly log: StepLog
  progress(current: number, total?: number, message?: string): void
}

/** How a step is run. */
export interface RunStepOptions {
  /**
   * At most once: the start is recorded before the body runs, and a start whose outcome was lost is an
   * `InterruptedError` in the job instead of a second run.
   */
  readonly once?: boolean | undefined
  /** Runs the body again that failed, the run waiting in the database meanwhile. Default: never. */
  readonly retry?: RetryPolicy | undefined
  /** Milliseconds that one try may take. Its signal aborts then, and the try has failed with a `TimeoutError`. */
  readonly timeout?: number | undefined
}

/** The function that a step runs. */
export type StepBody<T> = (step: StepTools) => T | Promise<T>

/** How a transaction is run. */
export interface TransactionOptions {
  /** Runs the body again that failed, the run waiting in the database meanwhile. Default: never. */
  readonly retry?: RetryPolicy | undefined
  /** Milliseconds that the transaction may be open; then it is rolled back with `TRANSACTION_TIMEOUT`. Default 5000. */
  readonly timeout?: number | undefined
}

/** What the body of a transaction gets besides the transaction. */
export type TransactionTools = Omit<StepTools, 'save' | 'checkpoint'>

/** Writes rows of the application. It awaits nothing but the transaction. */
export type TransactionBody<T, Trx> = (transaction: Trx, step: TransactionTools) => T | Promise<T>

/** How a stream is run. */
export type StreamOptions = Omit<RunStepOptions, 'once'>

/**
 * Hands a chunk to listeners at once, and to the history if there is one. Await it: it takes its time when the database
 * does not keep up.
 */
export type StreamEmit = (chunk: unknown) => Promise<void>

/** What the body of a stream gets besides `emit`. A stream that starts again starts from its beginning. */
export type StreamTools = Omit<StepTools, 'save' | 'checkpoint'>

/** The function that a stream runs. */
export type StreamBody<T> = (emit: StreamEmit, step: StreamTools) => T | Promise<T>

/** What `ctx.waitFor` waits for. */
export interface WaitForOptions<TPayload = unknown> {
  /** What the payload must be; one that it refuses is used up and makes the wait fail. */
  readonly schema?: StandardSchema<unknown, TPayload> | undefined
  /** Milliseconds; then the wait fails with a `TimeoutError`. */
  readonly timeout?: number | undefined
  /** The name of the signal, where it is not that of the step. */
  readonly signal?: string | undefined
}
