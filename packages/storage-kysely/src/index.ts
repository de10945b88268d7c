export type { DurabilityReport } from './durability'
export type {
  DialectHooks,
  Durability,
  DurablyDialect,
  NotificationListener,
  Notifications,
  Rows,
  Sender,
} from './drivers/hooks'
export type { SqlTransaction } from './given-transaction'
export { createKyselyStorage, type KyselyStorage, type KyselyStorageOptions } from './kysely-storage'
export type {
  DurablyDatabase,
  GatheredTable,
  InboxTable,
  JobStartsTable,
  LeadersTable,
  LogsTable,
  PausedJobsTable,
  RunEventsTable,
  RunLabelsTable,
  RunsTable,
  SchedulesTable,
  SchemaVersionsTable,
  SignalsTable,
  StepsTable,
  SubscriptionsTable,
} from './tables'
