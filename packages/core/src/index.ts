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
export type { Trouble } from './engine'
export type { ChildOptions, ChildRun, JobRef } from './step-trigger'
export type { ChildRuns, TriggerAllOptions } from './step-trigger-all'
export type { WaitForOptions } from './step-wait'
export type { ChildResult, WaitAllOptions } from './step-wait-all'
export { declareJob, type JobDeclaration, type JobDeclarationOptions } from './declare-job'
export type { LimitScope } from './admission'
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
export type { ForkOptions, RunForks } from './fork'
export type { Health } from './health'
export { keyConflict } from './key-conflict'
export { refuseMisspelledOptions, refuseUnknownOptions, type KnownOptions, type OptionNames } from './known-options'
export type { KnownJob } from './known-jobs'
export type { PauseOptions, Pauses } from './job-pauses'
export type { BatchTriggerInput, JobHandle, RunOutput } from './job-handle'
export {
  ENDED_STATUSES,
  GUARDS,
  isEnded,
  LIFECYCLE,
  RUN_STATUSES,
  type EndedStatus,
  type Guard,
  type Lifecycle,
  type RunStatus,
  type Transition,
  type TransitionName,
} from './lifecycle'
export { createMemoryStorage, type MemoryStorage, type MemoryStorageOptions } from './memory/memory-storage'
export type { DurablyOptions } from './options'
export type { Plugin, RecordedHistory, RunInfo, StepInfo, Uninstall, WorkerSwitch } from './plugin'
export type { RateLimit } from './rate-window'
export type { Logger } from './reporter'
export { requireRetryPolicy, type GrowingDelay, type RetryPolicy } from './retry'
export type { CompletedRun, Run, RunFields, Step, TriggeredRun } from './run'
export type { PurgeOptions, RunCommands, SignalOptions } from './commands'
export type { RunSearch, Wait } from './run-search'
export type { CountFilter, Log, PageOptions, RunFilter, RunReads } from './runs'
export type { SchemaIssue, SchemaResult, StandardSchema } from './schema'
export type { RunStepOptions, StepBody } from './step-run'
export type { NotStorable, Storable, StorableSchema } from './storable'
export type { StreamBody, StreamEmit, StreamOptions, StreamTools } from './step-stream'
export type { StepLog, StepTools } from './step-tools'
export type { TransactionBody, TransactionOptions, TransactionTools } from './step-transaction'
export type {
  Capability,
  ClaimParams,
  CommandAnswer,
  CommitAnswer,
  CountQuery,
  EnqueueAnswer,
  ErrorDetail,
  EventRecord,
  EventStorage,
  EventTail,
  EventTemplate,
  ForkStorage,
  Hint,
  Instant,
  JobLimits,
  JobLoad,
  Json,
  Lease,
  Leaving,
  Suspend,
  LimitedClaim,
  LimitedClaimParams,
  LimitStorage,
  LogPlace,
  LogRecord,
  LogStorage,
  NewFork,
  NewLog,
  NewRun,
  NewSignal,
  NextDue,
  Outcome,
  Progress,
  PurgeParams,
  RecoverParams,
  RenewAnswer,
  RunCommand,
  RunCommit,
  RunCursor,
  RunQuery,
  RunRecord,
  Scope,
  SignalAnswer,
  SignalRecord,
  SignalStorage,
  StatusCounts,
  StepKind,
  StepRecord,
  StepStatus,
  StepWrite,
  Storage,
  TransactionStorage,
  WaitingFor,
  WatchStorage,
} from './storage'
export { MOST_STARTS } from './storage'
export type { StoredEvent } from './stored-event'
export type { EventStream, RunSubscriptions, SubscribeOptions } from './subscribe'
export type { TriggerOptions } from './trigger'
export { encodeValue } from './values'
export type { WaitOptions } from './waits'
export type { DrainOptions, DrainResult } from './drain'
export { requireStopOptions, type StopOptions } from './stop-options'
export type { WorkerState } from './worker'
