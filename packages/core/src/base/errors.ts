import { DurablyError, type ErrorDetail } from './durably-error'
import type { RunStatus } from './run-status'

export { DurablyError }

/** One thing that a schema refuses, and where. */
export interface ValidationIssue {
  readonly path: string
  readonly message: string
}

/** An input, output or signal that its schema refuses. `issues` has each flaw with its path. */
export class ValidationError extends DurablyError {
  static override readonly 'durably:error' = { kind: 'ValidationError', isPermanent: true }
  readonly issues: readonly ValidationIssue[]

  constructor(what: string, issues: readonly ValidationIssue[]) {
    const list = issues.map((issue) => (issue.path === '' ? issue.message : `${issue.path}: ${issue.message}`))
    super('VALIDATION', `${what} does not match its schema: ${list.join('; ')}`)
    this.issues = issues
  }
}

/** An option or argument that makes no sense; the message says which, and what it takes. */
export class InvalidOptionError extends DurablyError {
  static override readonly 'durably:error' = { kind: 'InvalidOptionError', isPermanent: true }

  constructor(message: string) {
    super('INVALID_OPTION', message)
  }
}

/** A value that JSON would change or cannot carry, at `path`. The message says what to store instead. */
export class SerializationError extends DurablyError {
  static override readonly 'durably:error' = { kind: 'SerializationError', isPermanent: true }
  readonly path: string

  constructor(what: string, flaw: { readonly path: string; readonly reason: string }, options?: ErrorOptions) {
    super('SERIALIZATION', `${what}${flaw.path === '' ? '' : ` at ${flaw.path}`}: ${flaw.reason}`, options)
    this.path = flaw.path
  }
}

/** A value over its limit (1 MiB by default). Store a reference and keep the data elsewhere. */
export class PayloadTooLargeError extends DurablyError {
  static override readonly 'durably:error' = { kind: 'PayloadTooLargeError', isPermanent: true }
  readonly bytes: number
  readonly limit: number

  constructor(what: string, bytes: number, limit: number) {
    super('PAYLOAD_TOO_LARGE', `${what} is ${bytes} bytes, the limit is ${limit}. Store a reference instead.`)
    this.bytes = bytes
    this.limit = limit
  }
}

/** A run that does not exist (for this tenant) or was deleted, or a job that is not registered. */
export class NotFoundError extends DurablyError {
  static override readonly 'durably:error' = { kind: 'NotFoundError' }

  constructor(message: string) {
    super('NOT_FOUND', message)
  }

  static run(runId: string): NotFoundError {
    return new NotFoundError(`There is no run ${runId}. It may have been deleted or purged.`)
  }
}

/** The run is not in a state that allows the command (`status` has it), or its idempotency key is taken by a different payload. */
export class ConflictError extends DurablyError {
  static override readonly 'durably:error' = { kind: 'ConflictError' }
  readonly runId: string
  readonly status: RunStatus | null

  constructor(message: string, runId: string, status: RunStatus | null = null) {
    super('CONFLICT', message)
    this.runId = runId
    this.status = status
  }
}

/** Two definitions with one name on one instance. Give one of them another name. */
export class DuplicateJobError extends DurablyError {
  static override readonly 'durably:error' = { kind: 'DuplicateJobError' }

  constructor(jobName: string) {
    super('DUPLICATE_JOB', `A job named "${jobName}" is already registered. Job names must be unique.`)
  }
}

/** One step name used twice in one execution. Put what tells them apart into the name. */
export class DuplicateStepError extends DurablyError {
  static override readonly 'durably:error' = { kind: 'DuplicateStepError', isPermanent: true }

  constructor(stepName: string, first: string, second: string) {
    super(
      'DUPLICATE_STEP',
      `Step "${stepName}" was used twice in one execution: first ${first}, then ${second}. ` +
        'Give each step a name of its own, for example with an id in it.',
    )
  }
}

/** A ctx call inside the body of a step. Call it after that step. */
export class NestedStepError extends DurablyError {
  static override readonly 'durably:error' = { kind: 'NestedStepError', isPermanent: true }

  constructor(inner: string, outer: string) {
    super(
      'NESTED_STEP',
      `Step "${inner}" was called inside the body of step "${outer}". Call it after that step instead.`,
    )
  }
}

/** Why the execution of a run ends before its function does; `ended`: the function has settled. */
export type InterruptionReason = 'cancelled' | 'timeout' | 'lease-lost' | 'shutdown' | 'ended'

/** The reason of an aborted `ctx.signal`, and what ctx calls of an interrupted execution reject with. */
export class ExecutionAbortedError extends DurablyError {
  static override readonly 'durably:error' = { kind: 'ExecutionAbortedError' }
  readonly reason: InterruptionReason

  constructor(reason: InterruptionReason, runId: string) {
    super(INTERRUPTION_CODES[reason], `Run ${runId} was interrupted: ${reason}.`)
    this.reason = reason
  }
}

const INTERRUPTION_CODES = {
  cancelled: 'CANCELLED',
  timeout: 'TIMEOUT',
  'lease-lost': 'LEASE_LOST',
  shutdown: 'SHUTDOWN',
  ended: 'ENDED',
} as const satisfies Record<InterruptionReason, string>

/** The code of a `StepError` whose original had none. */
export const NO_CODE = 'STEP_FAILED'

/** A step that failed with an error that is none of durably's own, as the job gets it, at once and ever after. */
export class StepError extends DurablyError {
  static override readonly 'durably:error' = { kind: 'StepError' }
  readonly stepName: string
  readonly originalName: string

  constructor(stepName: string, message: string, detail: ErrorDetail | null) {
    super(detail?.code ?? NO_CODE, message)
    this.stepName = stepName
    this.originalName = detail?.name ?? 'Error'
  }
}

/** A `once` step was started and its outcome is not known. The job decides what that means: catch it, or let the run fail. */
export class InterruptedError extends DurablyError {
  static override readonly 'durably:error' = { kind: 'InterruptedError', isPermanent: true }
  readonly stepName: string

  constructor(stepName: string) {
    super(
      'INTERRUPTED',
      `Step "${stepName}" runs at most once, was started, and its outcome was lost. It was not run again.`,
    )
    this.stepName = stepName
  }
}

/** Throw it to say that trying again is useless. */
export class PermanentError extends DurablyError {
  static override readonly 'durably:error' = { kind: 'PermanentError', isPermanent: true }

  constructor(message: string, options?: ErrorOptions) {
    super('PERMANENT', message, options)
  }
}

/** Throw it to say when trying again makes sense: the retry policy decides whether, this error decides when. */
export class RetryAfterError extends DurablyError {
  static override readonly 'durably:error' = { kind: 'RetryAfterError' }
  /** Milliseconds from now. */
  readonly retryAfterMs: number

  constructor(message: string, after: number | Date, options?: ErrorOptions) {
    super('RETRY_AFTER', message, options)
    const isWait = after instanceof Date ? !Number.isNaN(after.getTime()) : Number.isFinite(after) && after >= 0
    if (!isWait) {
      throw new InvalidOptionError(`RetryAfterError needs milliseconds from 0, or a Date, not ${String(after)}.`)
    }
    this.retryAfterMs = typeof after === 'number' ? after : Math.max(0, after.getTime() - Date.now())
  }
}

/** Never thrown at anyone: what is recorded of a run that lost its worker too often. */
export class CrashLimitError extends DurablyError {
  static override readonly 'durably:error' = { kind: 'CrashLimitError', isPermanent: true }

  constructor(message: string) {
    super('crash_limit', message)
  }
}

/**
 * Never thrown at anyone: what `onError` hears of the first run of a job that was parked, and what is recorded of one that
 * was failed by hand.
 */
export class ParkedError extends DurablyError {
  static override readonly 'durably:error' = { kind: 'ParkedError' }

  constructor(message = 'The run was parked, and failed by hand.') {
    super('PARKED', message)
  }
}

/** The run that was waited for ended `failed`, or `timed_out` by a limit of its own; `run` has it. */
export class RunFailedError<TRun extends EndedBadly = EndedBadly> extends DurablyError {
  static override readonly 'durably:error' = { kind: 'RunFailedError' }
  readonly run: TRun

  constructor(run: TRun) {
    super('RUN_FAILED', `Run ${run.id} ${run.status === 'timed_out' ? 'timed out' : 'failed'}: ${run.error}`)
    this.run = run
  }
}

/** What `RunFailedError` needs of a run. */
export interface EndedBadly {
  readonly id: string
  readonly status: RunStatus
  readonly error: string | null
}

/** The run that was waited for was cancelled. */
export class CancelledError extends DurablyError {
  static override readonly 'durably:error' = { kind: 'CancelledError' }
  readonly runId: string

  constructor(runId: string) {
    super('CANCELLED', `Run ${runId} was cancelled.`)
    this.runId = runId
  }
}

/** The time to wait for a run was over. The run goes on. */
export class TimeoutError extends DurablyError {
  static override readonly 'durably:error' = { kind: 'TimeoutError' }

  constructor(message: string) {
    super('TIMEOUT', message)
  }
}
