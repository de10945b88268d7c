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
  override readonly name: string = 'ValidationError'
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
  override readonly name: string = 'InvalidOptionError'

  constructor(message: string) {
    super('INVALID_OPTION', message)
  }
}

/** A value that JSON would change or cannot carry, at `path`. The message says what to store instead. */
export class SerializationError extends DurablyError {
  static override readonly 'durably:error' = { kind: 'SerializationError', isPermanent: true }
  override readonly name: string = 'SerializationError'
  readonly path: string

  constructor(what: string, flaw: { readonly path: string; readonly reason: string }, options?: ErrorOptions) {
    super('SERIALIZATION', `${what}${flaw.path === '' ? '' : ` at ${flaw.path}`}: ${flaw.reason}`, options)
    this.path = flaw.path
  }
}

/** A value over its limit (1 MiB by default). Store a reference and keep the data elsewhere. */
export class PayloadTooLargeError extends DurablyError {
  static override readonly 'durably:error' = { kind: 'PayloadTooLargeError', isPermanent: true }
  override readonly name: string = 'PayloadTooLargeError'
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
  override readonly name: string = 'NotFoundError'

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
  override readonly name: string = 'ConflictError'
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
  override readonly name: string = 'DuplicateJobError'

  constructor(jobName: string) {
    super('DUPLICATE_JOB', `A job named "${jobName}" is already registered. Job names must be unique.`)
  }
}

/** One step name used twice in one execution. Put what tells them apart into the name. */
export class DuplicateStepError extends DurablyError {
  static override readonly 'durably:error' = { kind: 'DuplicateStepError', isPermanent: true }
  override readonly name: string = 'DuplicateStepError'

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
  override readonly name: string = 'NestedStepError'

  constructor(inner: string, outer: string) {
    super(
      'NESTED_STEP',
      `Step "${inner}" was called inside the body of step "${outer}". Call it after that step instead.`,
    )
  }
}

/** The storage (or how it was set up) cannot do what was asked; `capability` names the group of methods that it lacks. */
export class CapabilityMissingError extends DurablyError {
  static override readonly 'durably:error' = { kind: 'CapabilityMissingError', isPermanent: true }
  override readonly name: string = 'CapabilityMissingError'
  readonly capability: string

  constructor(capability: string, wanted: string) {
    super('CAPABILITY_MISSING', `${wanted} needs a storage with "${capability}", and this one has none.`)
    this.capability = capability
  }
}

/** A live view of a run executed elsewhere needs its history in the database: `durably.use(withLogPersistence())`. */
export class HistoryRequiredError extends DurablyError {
  static override readonly 'durably:error' = { kind: 'HistoryRequiredError' }
  override readonly name: string = 'HistoryRequiredError'

  constructor(what: string) {
    super('HISTORY_REQUIRED', `${what} needs stored events: durably.use(withLogPersistence()).`)
  }
}

/** The tables are missing or older than this code: `await durably.migrate()`. */
export class NotMigratedError extends DurablyError {
  static override readonly 'durably:error' = { kind: 'NotMigratedError' }
  override readonly name: string = 'NotMigratedError'

  constructor(found: number, wanted: number) {
    const state = found === 0 ? 'has no durably tables' : `has schema version ${found}, this code needs ${wanted}`
    super('NOT_MIGRATED', `The database ${state}. Call await durably.migrate() first.`)
  }
}

/** The tables are so new that this code must not touch them: update durably. */
export class SchemaTooNewError extends DurablyError {
  static override readonly 'durably:error' = { kind: 'SchemaTooNewError' }
  override readonly name: string = 'SchemaTooNewError'

  constructor(minReader: number, known: number) {
    super(
      'SCHEMA_TOO_NEW',
      `The database asks for schema version ${minReader} or newer, this code knows ${known}. Update durably.`,
    )
  }
}

/** `migrate()` found something it does not own or cannot use, such as another table of a name of its own. */
export class MigrationError extends DurablyError {
  static override readonly 'durably:error' = { kind: 'MigrationError' }
  override readonly name: string = 'MigrationError'

  constructor(message: string, options?: ErrorOptions) {
    super('MIGRATION_FAILED', message, options)
  }
}

/** What went wrong with the database. */
export type StorageErrorCode =
  /** Somebody else writes to the SQLite file for longer than 5 s. The engine tries again by itself; a call of yours can be repeated. */
  | 'STORAGE_BUSY'
  /** The database cannot be reached, the connection was lost, or a table is not as it should be. Tried again until it is. */
  | 'STORAGE_UNAVAILABLE'
  /** The file cannot be opened or kept: look at its path and rights, or at the headers of the page. */
  | 'STORAGE_CANNOT_OPEN'
  /** The database was closed while something was asked of it. */
  | 'STORAGE_CLOSED'
  /** The file or the server takes no writes: look at its rights, or connect to the primary. */
  | 'STORAGE_READONLY'
  /** The disk, or the quota of the browser, is full. Goes on when there is room. */
  | 'STORAGE_FULL'
  /** The file is damaged, or no database. Restore it from a backup. */
  | 'STORAGE_CORRUPT'
  /** Another tab or program has the file for itself. Close it. */
  | 'STORAGE_HELD'
  /** The database will never take the data of this very write. The message has its reason. Of a step's result it is the failure of the step. */
  | 'STORAGE_REJECTED'
  /** A storage of your own answered a list of commits with too few answers. What it left out is sent again, under the same number. */
  | 'STORAGE_NO_ANSWER'
  /** No connection was free for 5 s, and nothing was sent: something holds it, such as a transaction that awaits something else. */
  | 'CONNECTION_HELD'
  /** A transaction was open for longer than it may, and was rolled back. Await nothing but the transaction in it. */
  | 'TRANSACTION_TIMEOUT'

/**
 * The database could not do its work. Never the fault of a job and never recorded as one: the engine waits and tries
 * again, except after `STORAGE_REJECTED`, which says that this very write will never be taken: a step whose result is refused so
 * has failed.
 */
export class StorageError extends DurablyError {
  static override readonly 'durably:error' = { kind: 'StorageError' }
  override readonly name: string = 'StorageError'
  declare readonly code: StorageErrorCode
  /** Whether the database may have got what was asked of it: not when it could not even be reached. */
  readonly mayHaveArrived: boolean

  constructor(
    code: StorageErrorCode,
    message: string,
    options: ErrorOptions & { readonly mayHaveArrived?: boolean } = {},
  ) {
    super(code, message, options)
    this.mayHaveArrived = options.mayHaveArrived ?? code === 'STORAGE_UNAVAILABLE'
  }
}

/** The storage will never take what it was given. */
export function isRejection(error: unknown): error is StorageError {
  return error instanceof StorageError && error.code === 'STORAGE_REJECTED'
}

/** The call was sent, and the connection was lost before the answer came. Repeating the call with the same idempotency key is safe. */
export class UnknownOutcomeError extends DurablyError {
  static override readonly 'durably:error' = { kind: 'UnknownOutcomeError' }
  override readonly name: string = 'UnknownOutcomeError'

  constructor(what: string, options?: ErrorOptions) {
    const why = options?.cause instanceof Error ? options.cause.message : 'the answer was lost'
    super(
      'UNKNOWN_OUTCOME',
      `Whether ${what} happened is not known (${why}). Repeat it with the same idempotencyKey.`,
      options,
    )
  }
}

/** Why the execution of a run ends before its function does; `ended`: the function has settled. */
export type InterruptionReason = 'cancelled' | 'timeout' | 'lease-lost' | 'shutdown' | 'ended'

/** The reason of an aborted `ctx.signal`, and what ctx calls of an interrupted execution reject with. */
export class ExecutionAbortedError extends DurablyError {
  static override readonly 'durably:error' = { kind: 'ExecutionAbortedError' }
  override readonly name: string = 'ExecutionAbortedError'
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
  override readonly name: string = 'StepError'
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
  override readonly name: string = 'InterruptedError'
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
  override readonly name: string = 'PermanentError'

  constructor(message: string, options?: ErrorOptions) {
    super('PERMANENT', message, options)
  }
}

/** Throw it to say when trying again makes sense: the retry policy decides whether, this error decides when. */
export class RetryAfterError extends DurablyError {
  static override readonly 'durably:error' = { kind: 'RetryAfterError' }
  override readonly name: string = 'RetryAfterError'
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
  override readonly name: string = 'CrashLimitError'

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
  override readonly name: string = 'ParkedError'

  constructor(message = 'The run was parked, and failed by hand.') {
    super('PARKED', message)
  }
}

/** The run that was waited for ended `failed`, or `timed_out` by a limit of its own; `run` has it. */
export class RunFailedError<TRun extends EndedBadly = EndedBadly> extends DurablyError {
  static override readonly 'durably:error' = { kind: 'RunFailedError' }
  override readonly name: string = 'RunFailedError'
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
  override readonly name: string = 'CancelledError'
  readonly runId: string

  constructor(runId: string) {
    super('CANCELLED', `Run ${runId} was cancelled.`)
    this.runId = runId
  }
}

/** The time to wait for a run was over. The run goes on. */
export class TimeoutError extends DurablyError {
  static override readonly 'durably:error' = { kind: 'TimeoutError' }
  override readonly name: string = 'TimeoutError'

  constructor(message: string) {
    super('TIMEOUT', message)
  }
}

/** An instance that was closed. Create another one. */
export class ClosedError extends DurablyError {
  static override readonly 'durably:error' = { kind: 'ClosedError' }
  override readonly name: string = 'ClosedError'

  constructor() {
    super('CLOSED', 'This durably instance was closed.')
  }
}
