export { dialectOf } from './dialect-of'
export type { SqlDialect, SqlType } from './dialect'
export {
  CALLERS_LOCK_MS,
  type DialectHooks,
  type Durability,
  type DurablyDialect,
  hooksOf,
  type NotificationListener,
  type Notifications,
  type Rows,
  type Sender,
} from './hooks'
export {
  type DurablyDatabase,
  type GatheredTable,
  type InboxTable,
  type JobStartsTable,
  type LeadersTable,
  type LogsTable,
  type PausedJobsTable,
  type RunEventsTable,
  type RunLabelsTable,
  type RunsTable,
  type SchedulesTable,
  type SchemaVersionsTable,
  type SignalsTable,
  type StepsTable,
  type SubscriptionsTable,
  type TableName,
  tableRefs,
  type TableRefs,
} from './tables'
