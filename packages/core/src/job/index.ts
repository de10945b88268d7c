export type {
  ChildOptions,
  Children,
  ChildResult,
  ChildRun,
  ChildRuns,
  JobRef,
  TriggerAllOptions,
  WaitAllOptions,
} from './children'
export type { JobContext } from './context'
export type { ContinuationBy, ContinuationOptions } from './continuation'
export { declareJob, isDeclaration, type JobDeclaration, type JobDeclarationOptions, namedJob } from './declare-job'
export { defineJob, type JobDefinition, type JobOptions } from './define-job'
export {
  createEmitter,
  type DurablyEvent,
  type Emitter,
  EVENT_TYPES,
  type EventFields,
  type EventInput,
  type EventType,
  type LogWriteEvent,
  type Numbered,
  type OfRun,
  type OfMessage,
  type OfSchedule,
  type OfStep,
  type RunCompleteEvent,
  type RunFailEvent,
  type RunStartEvent,
  type StepCompleteEvent,
  type StepFailEvent,
  type StepStartEvent,
  toTemplate,
} from './events'
export { type BatchOptions, type DebounceOptions, type Gathering, MOST_TOGETHER } from './gathering'
export { type LimitScope, requireScope } from './job-limits'
export { type FailedRun, failedRun, type FailureHandler, refuseChain } from './on-failure'
export type { MessageWish, MessageWishes, WishedValue } from './message-wish'
export { hasLabels, type JobPlacement, type PlacementBy, type PlacementOptions } from './placement'
export type { PlainAttempt, PlainBody } from './plain-job'
export { RateElsewhere, RateWindow } from './rate-window'
export {
  type FailedTry,
  type GrowingDelay,
  lostTooOften,
  refuseSpent,
  requireRetryPolicy,
  retryDelayMs,
  type RetryPolicy,
  triesOf,
} from './retry'
export {
  type CompletedRun,
  type ContinuationState,
  type Run,
  type RunFields,
  type Step,
  toRun,
  toStep,
  type TriggeredRun,
  type StoredEvent,
  toStoredEvent,
} from './run'
export type {
  RunStepOptions,
  StepBody,
  StepLog,
  StepTools,
  StreamBody,
  StreamEmit,
  StreamOptions,
  StreamTools,
  TransactionBody,
  TransactionOptions,
  TransactionTools,
  WaitForOptions,
} from './step-options'
export type { NotStorable, Storable, StorableSchema } from './storable'
export {
  TRIGGER_BATCH,
  TRIGGER_DEBOUNCE,
  TRIGGER_OPTIONS,
  type TriggerBatch,
  type TriggerDebounce,
  type TriggerOptions,
} from './trigger-options'
