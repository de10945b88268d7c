export type { DurabilityReport } from './durability'
export type {
  DialectHooks,
  Durability,
  DurablyDialect,
  NotificationListener,
  Notifications,
  Rows,
} from './drivers/hooks'
export { createKyselyStorage, type KyselyStorage, type KyselyStorageOptions } from './kysely-storage'
export type {
  DurablyDatabase,
  LogsTable,
  RunEventsTable,
  RunLabelsTable,
  RunsTable,
  SchemaVersionsTable,
  SignalsTable,
  StepsTable,
} from './tables'
