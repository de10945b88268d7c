export {
  createInbox,
  type Inbox,
  type InboxMessage,
  type InboxOptions,
  type MessageFilter,
  type MessagePage,
  type MessagePurgeOptions,
} from './inbox'
export { type Cluster, type ClusterOptions, createCluster } from './cluster'
export type { LeaderStatus } from './leader'
export type { KnownJobRecord, LeadRecord, WorkerPresence, WorkerRecord } from '@coji/durably-core/storage'
export type { BackfillOptions } from './backfill'
export type { Missed } from './definition'
export type { Schedule } from './schedule'
export type { ScheduleCommands, ScheduleFilter, ScheduleScope, TenantOption } from './schedule-commands'
export type {
  RunOptions,
  ScheduleOptions,
  ScheduleUpdate,
  TimingOptions,
} from './schedule-options'
export { createScheduler, type Scheduler, type SchedulerOptions } from './scheduler'
export type { Timing } from './timing'
