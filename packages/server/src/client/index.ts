export { createDurablyClient } from './client'
export type {
  BulkFilter,
  ClientOptions,
  ClientTriggerOptions,
  DurablyClient,
  MessageListQuery,
  Named,
  NameOf,
  ReplayFilter,
  ScheduleListQuery,
  ScheduleScope,
  TypesOf,
  WaitsQuery,
} from './client'
export type { ClientCommands } from './commands'
export { ServerError, UnreachableError } from './errors'
export type { RunChange } from './follow'
export type { CountedRuns, CountReads } from './reads'
export type { TransportOptions } from './transport'
export type { ClientWaits } from './wait'
export type { BulkResult } from '../bulk'
export type { Action, BulkBody, BulkPreview, JobList, Me, Problem, WaitPage } from '../wire'
export type { MessageCounts, MessagePage, SchedulePage, ServedMessage, ServedSchedule } from '../wire'
export type { ServedLead, ServedWorker, WorkerList } from '../wire'
