import { DurablyError } from './durably-error'

/** The storage (or how it was set up) cannot do what was asked; `capability` names the group of methods that it lacks. */
export class CapabilityMissingError extends DurablyError {
  static override readonly 'durably:error' = { kind: 'CapabilityMissingError', isPermanent: true }
  readonly capability: string

  constructor(capability: string, wanted: string) {
    super('CAPABILITY_MISSING', `${wanted} needs a storage with "${capability}", and this one has none.`)
    this.capability = capability
  }
}

/** A live view of a run executed elsewhere needs its history in the database: `durably.use(withLogPersistence())`. */
export class HistoryRequiredError extends DurablyError {
  static override readonly 'durably:error' = { kind: 'HistoryRequiredError' }

  constructor(what: string) {
    super('HISTORY_REQUIRED', `${what} needs stored events: durably.use(withLogPersistence()).`)
  }
}

/** The tables are missing or older than this code: `await durably.migrate()`. */
export class NotMigratedError extends DurablyError {
  static override readonly 'durably:error' = { kind: 'NotMigratedError' }

  constructor(found: number, wanted: number) {
    const state = found === 0 ? 'has no durably tables' : `has schema version ${found}, this code needs ${wanted}`
    super('NOT_MIGRATED', `The database ${state}. Call await durably.migrate() first.`)
  }
}

/** The tables are so new that this code must not touch them: update durably. */
export class SchemaTooNewError extends DurablyError {
  static override readonly 'durably:error' = { kind: 'SchemaTooNewError' }

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

  constructor(what: string, options?: ErrorOptions) {
    const why = options?.cause instanceof Error ? options.cause.message : 'the answer was lost'
    super(
      'UNKNOWN_OUTCOME',
      `Whether ${what} happened is not known (${why}). Repeat it with the same idempotencyKey.`,
      options,
    )
  }
}

/** Why the logs of a run cannot be had from the archive. */
export type LogArchiveTrouble = 'no-archive' | 'missing' | 'broken' | 'unreachable'

/** The logs of a run are in an archive, and cannot be had from it; the run is as it was. `reason` says why. */
export class LogArchiveError extends DurablyError {
  static override readonly 'durably:error' = { kind: 'LogArchiveError' }
  readonly reason: LogArchiveTrouble

  constructor(reason: LogArchiveTrouble, message: string, options?: ErrorOptions) {
    super('LOGS_UNAVAILABLE', message, options)
    this.reason = reason
  }
}

/** An instance that was closed. Create another one. */
export class ClosedError extends DurablyError {
  static override readonly 'durably:error' = { kind: 'ClosedError' }

  constructor() {
    super('CLOSED', 'This durably instance was closed.')
  }
}
