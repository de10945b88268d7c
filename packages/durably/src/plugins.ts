export { withLogPersistence, withRetention } from '@coji/durably-plugins'
export type { LogPersistenceOptions, RetentionOptions } from '@coji/durably-plugins'
