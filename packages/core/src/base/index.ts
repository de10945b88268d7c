export { addHistograms, bucketOf, type Histogram, HistogramSum } from './histogram'
export { createBreath } from './breath'
export { describeError, describeFailure, errorFrom } from './describe-error'
export type { ErrorDetail } from './durably-error'
export {
  type Clock,
  createEnvironment,
  type Environment,
  LONGEST_DELAY_MS,
  systemClock,
  toInstant,
  turnOf,
} from './environment'
export { brandOf } from './error-brand'
export {
  CancelledError,
  ConflictError,
  CrashLimitError,
  DuplicateJobError,
  DuplicateStepError,
  DurablyError,
  type EndedBadly,
  InterruptedError,
  ExecutionAbortedError,
  type InterruptionReason,
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
  type ValidationIssue,
} from './errors'
export { guarded, handled, onRejection } from './guarded'
export { isSameJson, type Json, decodeValue, encodeValue, MAX_VALUE_BYTES, utf8Length } from './values'
export { type KnownOptions, type OptionNames, refuseMisspelledOptions, refuseUnknownOptions } from './known-options'
export { Listeners } from './listeners'
export { toLogData, toLogText } from './logging'
export {
  instantIn,
  isInstant,
  isStorableDelay,
  isStorableInstant,
  isStorableText,
  requireDelay,
  refuseBadDuration,
  refuseBadKey,
  refuseBadText,
  requireBoolean,
  requireDuration,
  requireInteger,
  requireLabels,
} from './option-values'
export { createPatience } from './patience'
export { builtin } from './platform'
export { createReporter, type Logger } from './reporter'
export { goRounds } from './rounds'
export { ENDED_STATUSES, type EndedStatus, isEnded, RUN_STATUSES, type RunStatus } from './run-status'
export { parseNow, parseWith, type SchemaIssue, type SchemaResult, type StandardSchema } from './schema'
export {
  CapabilityMissingError,
  ClosedError,
  HistoryRequiredError,
  isRejection,
  LogArchiveError,
  type LogArchiveTrouble,
  MigrationError,
  NotMigratedError,
  SchemaTooNewError,
  StorageError,
  type StorageErrorCode,
  UnknownOutcomeError,
} from './storage-errors'
export { atMost, inTime, inTimeWithSignal, pause } from './time-limit'
