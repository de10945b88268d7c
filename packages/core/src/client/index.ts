export type { Actor, CommandOptions } from './acting'
export { requireActor } from './acting'
export {
  type AuditEntry,
  type AuditFilter,
  type AuditPurge,
  type AuditReads,
  createAuditReads,
  purgeAudit,
} from './audit'
export { createSettings, type SettingChanges, type Settings, type SettingValues } from './settings'
export { runTransaction } from './caller-transaction'
export { refuseInside } from './calls-in-jobs'
export { createRunCommands, type PurgeOptions, type RunCommands, type SignalOptions } from './commands'
export { createForks, type ForkOptions, type RunForks } from './fork'
export {
  type BatchTriggerInput,
  createJobHandle,
  type JobHandle,
  type JobHandleParams,
  type RunOutput,
  TRIGGER_AND_WAIT_OPTIONS,
} from './job-handle'
export { createPublishing, type Message, type PublishedMessage, type Publishing } from './publish'
export { createRunDrafts, type DraftOptions, type RunDraft, type RunDrafts } from './run-drafts'
export { createPauses, type PauseOptions, type Pauses } from './job-pauses'
export { type CountFilter, createRunReads, type Log, type PageOptions, type RunFilter, type RunReads } from './runs'
export type { RunSearch, Wait } from './run-search'
export type { Percentiles, Statistics, StatisticsCounts, StatisticsFilter, StatisticsPoint } from './statistics'
export { toLogTemplate } from './stored-logs'
export { createSubscriptions, type EventStream, type RunSubscriptions, type SubscribeOptions } from './subscribe'
export { TailReader } from './tail-reader'
export {
  createRuns,
  DEFAULTS,
  enqueueRuns,
  newRunOf,
  newRunOfEncoded,
  toTriggeredRun,
  type TriggerItem,
} from './trigger'
export { refuseBadWait, WAIT_OPTIONS, type WaitOptions, Waits } from './waits'
