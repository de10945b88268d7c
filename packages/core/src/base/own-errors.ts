import {
  CancelledError,
  ConflictError,
  CrashLimitError,
  DuplicateJobError,
  DuplicateStepError,
  DurablyError,
  InterruptedError,
  ExecutionAbortedError,
  InvalidOptionError,
  NestedStepError,
  NotFoundError,
  ParkedError,
  PayloadTooLargeError,
  PermanentError,
  RetryAfterError,
  RunFailedError,
  SerializationError,
  StepError,
  TimeoutError,
  ValidationError,
} from './errors'
import {
  CapabilityMissingError,
  ClosedError,
  HistoryRequiredError,
  LogArchiveError,
  MigrationError,
  NotMigratedError,
  SchemaTooNewError,
  StorageError,
  UnknownOutcomeError,
} from './storage-errors'

type OwnClass = Pick<typeof DurablyError, 'prototype' | 'durably:error'>

/** Every class of error that durably throws, and what it has besides name, message, code and issues. */
const OWN_ERRORS: readonly (readonly [type: OwnClass, ...fields: string[]])[] = [
  [CancelledError, 'runId'],
  [CapabilityMissingError, 'capability'],
  [ClosedError],
  [ConflictError, 'runId', 'status'],
  [CrashLimitError],
  [DuplicateJobError],
  [DuplicateStepError],
  [DurablyError],
  [ExecutionAbortedError, 'reason'],
  [HistoryRequiredError],
  [InterruptedError, 'stepName'],
  [InvalidOptionError],
  [LogArchiveError, 'reason'],
  [MigrationError],
  [NestedStepError],
  [NotFoundError],
  [NotMigratedError],
  [ParkedError],
  [PayloadTooLargeError, 'bytes', 'limit'],
  [PermanentError],
  [RetryAfterError, 'retryAfterMs'],
  [RunFailedError, 'run'],
  [SchemaTooNewError],
  [SerializationError, 'path'],
  [StepError],
  [StorageError, 'mayHaveArrived'],
  [TimeoutError],
  [UnknownOutcomeError],
  [ValidationError],
]

interface OwnError {
  readonly type: OwnClass
  readonly fields: readonly string[]
}

/** The class of that name, unless it is one of a newer copy of this package. */
export function ownError(kind: string): OwnError | undefined {
  const found = OWN_ERRORS.find(([type]) => type['durably:error'].kind === kind)
  if (found === undefined) return undefined
  const [type, ...fields] = found
  return { type, fields }
}
