import { BRAND, brandOf, setBrand } from './error-brand'
import {
  CancelledError,
  CapabilityMissingError,
  ClosedError,
  ConflictError,
  CrashLimitError,
  DuplicateJobError,
  DuplicateStepError,
  DurablyError,
  HistoryRequiredError,
  InterruptedError,
  InterruptionError,
  InvalidOptionError,
  MigrationError,
  NestedStepError,
  NotFoundError,
  NotMigratedError,
  ParkedError,
  PayloadTooLargeError,
  PermanentError,
  RetryAfterError,
  RunFailedError,
  SchemaTooNewError,
  SerializationError,
  StepError,
  StorageError,
  TimeoutError,
  UnknownOutcomeError,
  ValidationError,
} from './errors'

interface OwnError {
  readonly type: { readonly prototype: DurablyError }
  /** What it has besides name, message, code and issues. */
  readonly fields?: readonly string[]
  /** Trying again would come to the same. */
  readonly isPermanent?: true
}

/** Every class of error that durably throws. */
const OWN_ERRORS = {
  CancelledError: { type: CancelledError, fields: ['runId'] },
  CapabilityMissingError: { type: CapabilityMissingError, fields: ['capability'], isPermanent: true },
  ClosedError: { type: ClosedError },
  ConflictError: { type: ConflictError, fields: ['runId', 'status'] },
  CrashLimitError: { type: CrashLimitError },
  DuplicateJobError: { type: DuplicateJobError },
  DuplicateStepError: { type: DuplicateStepError, isPermanent: true },
  DurablyError: { type: DurablyError },
  HistoryRequiredError: { type: HistoryRequiredError },
  InterruptedError: { type: InterruptedError, fields: ['stepName'], isPermanent: true },
  InterruptionError: { type: InterruptionError, fields: ['reason'] },
  InvalidOptionError: { type: InvalidOptionError, isPermanent: true },
  MigrationError: { type: MigrationError },
  NestedStepError: { type: NestedStepError, isPermanent: true },
  NotFoundError: { type: NotFoundError },
  NotMigratedError: { type: NotMigratedError },
  ParkedError: { type: ParkedError },
  PayloadTooLargeError: { type: PayloadTooLargeError, fields: ['bytes', 'limit'], isPermanent: true },
  PermanentError: { type: PermanentError, isPermanent: true },
  RetryAfterError: { type: RetryAfterError, fields: ['retryAfterMs'] },
  RunFailedError: { type: RunFailedError, fields: ['run'] },
  SchemaTooNewError: { type: SchemaTooNewError },
  SerializationError: { type: SerializationError, fields: ['path'], isPermanent: true },
  StepError: { type: StepError },
  StorageError: { type: StorageError },
  TimeoutError: { type: TimeoutError },
  UnknownOutcomeError: { type: UnknownOutcomeError },
  ValidationError: { type: ValidationError, isPermanent: true },
} as const satisfies Readonly<Record<string, OwnError>>

/** The class of that name, unless it is one of a newer copy of this package. */
export function ownError(kind: string): OwnError | undefined {
  return Object.hasOwn(OWN_ERRORS, kind) ? OWN_ERRORS[kind as keyof typeof OWN_ERRORS] : undefined
}

// A name or a code may be those of a subclass; what a class has on its prototype is its subclasses' too.
for (const kind of Object.keys(OWN_ERRORS)) {
  const { type, isPermanent = false } = ownError(kind) as OwnError
  setBrand(type.prototype, { kind, isPermanent })
}

/** An error of the same class of another copy of this package counts as one of this one. */
function isInstance(this: { readonly prototype: object }, thrown: unknown): boolean {
  if (Function.prototype[Symbol.hasInstance].call(this, thrown)) return true
  const kind = brandOf(thrown)?.kind
  if (kind === undefined || !Object.hasOwn(this.prototype, BRAND)) return false
  return this.prototype === DurablyError.prototype || kind === brandOf(this.prototype)?.kind
}

Object.defineProperty(DurablyError, Symbol.hasInstance, { value: isInstance })
