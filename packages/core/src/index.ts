export { systemClock, type Clock, type Environment } from './environment'
export type {
  AssignedParams,
  Assignment,
  ClusterStorage,
  Firing,
  Lead,
  WorkerBeat,
  WorkerRecord,
} from './cluster-storage'
export type { JobContext } from './context'
export type { Trouble, WorkerState } from './engine'
export type {
  ChildOptions,
  ChildRun,
  JobRef,
  ChildRuns,
  TriggerAllOptions,
  ChildResult,
  WaitAllOptions,
} from './children'
export type {
  WaitForOptions,
  RunStepOptions,
  StepBody,
  StreamBody,
  StreamEmit,
  StreamOptions,
  StreamTools,
  StepLog,
  StepTools,
  TransactionBody,
  TransactionOptions,
  TransactionTools,
} from './step-options'
export { declareJob, type JobDeclaration, type JobDeclarationOptions } from './declare-job'
export type { LimitScope } from './job-limits'
export { defineJob, type JobDefinition, type JobOptions } from './define-job'
export {
  CRASH_BACKOFF,
  isSuspect,
  recoveryOf,
  SUSPECT_FROM,
  type LostRun,
  type Recovery,
  type RecoveryTerms,
} from './crashes'
export {
  createDurably,
  type Durably,
  type Handles as JobHandles,
  type Health,
  type JobRecord,
  type RecoverOptions,
  type RunTriggers,
  type ScopedDurably,
} from './durably'
export {
  CancelledError,
  CapabilityMissingError,
  ClosedError,
  ConflictError,
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
  type EndedBadly,
  type InterruptionReason,
  type StorageErrorCode,
  type ValidationIssue,
} from './errors'
export type {
  DurablyEvent,
  EventFields,
  EventInput,
  EventType,
  LogWriteEvent,
  Numbered as NumberedEvent,
  OfRun as EventOfRun,
  OfStep as EventOfStep,
  RunCompleteEvent,
  RunFailEvent,
  RunStartEvent,
  StepCompleteEvent,
  StepFailEvent,
  StepStartEvent,
} from './events'
export { keyConflict } from './key-conflict'
export { refuseMisspelledOptions, refuseUnknownOptions, type KnownOptions, type OptionNames } from './known-options'
export type { PauseOptions, Pauses } from './job-pauses'
export type { BatchTriggerInput, JobHandle, RunOutput } from './job-handle'
export { ENDED_STATUSES, isEnded, RUN_STATUSES, type EndedStatus, type RunStatus } from './run-status'
export { GUARDS, LIFECYCLE, type Guard, type Lifecycle, type Transition, type TransitionName } from './lifecycle'
export { createMemoryStorage, type MemoryStorage, type MemoryStorageOptions } from './memory/memory-storage'
export type { DurablyOptions } from './options'
export type { Plugin, Uninstall, WorkerSwitch } from './plugin'
export type { RecordedHistory, RunInfo, StepInfo } from './hooks'
export {
  type RateLimit,
  type Capability,
  type EventStorage,
  type EventTail,
  type Hint,
  type JobLimits,
  type JobLoad,
  type LimitedClaim,
  type LimitedClaimParams,
  type LimitStorage,
  type LogPlace,
  type LogStorage,
  type NewSignal,
  type SignalAnswer,
  type SignalStorage,
  type TransactionStorage,
  type WatchStorage,
  MOST_STARTS,
} from './capabilities'
export type { Logger } from './reporter'
export { requireRetryPolicy, type GrowingDelay, type RetryPolicy } from './retry'
export type { CompletedRun, Run, RunFields, Step, TriggeredRun } from './run'
export type { PurgeOptions, RunCommands, SignalOptions } from './commands'
export type { CountFilter, Log, PageOptions, RunFilter, RunReads } from './runs'
export type { SchemaIssue, SchemaResult, StandardSchema } from './schema'
export type { NotStorable, Storable, StorableSchema } from './storable'
export type {
  ClaimParams,
  CommandAnswer,
  CountQuery,
  NextDue,
  PurgeParams,
  RecoverParams,
  RenewAnswer,
  RunCommand,
  RunCursor,
  RunQuery,
  StatusCounts,
  Storage,
} from './storage'
export type { CommitAnswer, EnqueueAnswer, Leaving, Suspend, NewRun, Outcome, RunCommit, StepWrite } from './writes'
export type { ErrorDetail } from './durably-error'
export type {
  EventRecord,
  EventTemplate,
  Instant,
  Lease,
  LogRecord,
  NewLog,
  Progress,
  RunRecord,
  Scope,
  SignalRecord,
  StepKind,
  StepRecord,
  StepStatus,
  WaitingFor,
} from './records'
export type { Json } from './same-json'
export type { StoredEvent } from './stored-event'
export type { EventStream, RunSubscriptions, SubscribeOptions } from './subscribe'
export type { TriggerOptions } from './trigger-options'
export type { WaitOptions } from './waits'
export type { DrainOptions, DrainResult } from './drain'
export { requireStopOptions, type StopOptions } from './stop-options'
