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

interface OwnError {
  readonly type: { readonly prototype: DurablyError }
  /** What it has besides name, message, code and issues. */
  readonly fields?: readonly string[]
}

/** Every class of error that durably throws. */
const OWN_ERRORS = {
  CancelledError: { type: CancelledError, fields: ['runId'] },
  CapabilityMissingError: { type: CapabilityMissingError, fields: ['capability'] },
  ClosedError: { type: ClosedError },
  ConflictError: { type: ConflictError, fields: ['runId', 'status'] },
  CrashLimitError: { type: CrashLimitError },
  DuplicateJobError: { type: DuplicateJobError },
  DuplicateStepError: { type: DuplicateStepError },
  DurablyError: { type: DurablyError },
  ExecutionAbortedError: { type: ExecutionAbortedError, fields: ['reason'] },
  HistoryRequiredError: { type: HistoryRequiredError },
  InterruptedError: { type: InterruptedError, fields: ['stepName'] },
  InvalidOptionError: { type: InvalidOptionError },
  LogArchiveError: { type: LogArchiveError, fields: ['reason'] },
  MigrationError: { type: MigrationError },
  NestedStepError: { type: NestedStepError },
  NotFoundError: { type: NotFoundError },
  NotMigratedError: { type: NotMigratedError },
  ParkedError: { type: ParkedError },
  PayloadTooLargeError: { type: PayloadTooLargeError, fields: ['bytes', 'limit'] },
  PermanentError: { type: PermanentError },
  RetryAfterError: { type: RetryAfterError, fields: ['retryAfterMs'] },
  RunFailedError: { type: RunFailedError, fields: ['run'] },
  SchemaTooNewError: { type: SchemaTooNewError },
  SerializationError: { type: SerializationError, fields: ['path'] },
  StepError: { type: StepError },
  StorageError: { type: StorageError, fields: ['mayHaveArrived'] },
  TimeoutError: { type: TimeoutError },
  UnknownOutcomeError: { type: UnknownOutcomeError },
  ValidationError: { type: ValidationError },
} as const satisfies Readonly<Record<string, OwnError>>

/** The class of that name, unless it is one of a newer copy of this package. */
export function ownError(kind: string): OwnError | undefined {
  return Object.hasOwn(OWN_ERRORS, kind) ? OWN_ERRORS[kind as keyof typeof OWN_ERRORS] : undefined
}
