export type { DurabilityReport, SqlTransaction } from './connection'
export type {
  ArchiveStraysTable,
  AuditTable,
  DialectHooks,
  Durability,
  DurablyDatabase,
  DurablyDialect,
  GatheredTable,
  InboxTable,
  JobStartsTable,
  LeadersTable,
  LogsTable,
  NotificationListener,
  Notifications,
  PausedJobsTable,
  Rows,
  RunEventsTable,
  RunLabelsTable,
  RunsTable,
  SchedulesTable,
  SchemaVersionsTable,
  Sender,
  SettingsTable,
  SignalsTable,
  StatisticsPlaceTable,
  StatisticsTable,
  StepsTable,
  SubscriptionsTable,
} from './dialect'
export { createKyselyStorage, type KyselyStorage, type KyselyStorageOptions } from './kysely-storage'
export type { Holder, WorkReport } from './read'
export type { SchemaReport } from './schema'
