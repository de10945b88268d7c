export { withLogPersistence, withRetention, withTabLeader } from '@coji/durably-plugins'
export type { LogPersistenceOptions, RetentionOptions, TabLeaderOptions } from '@coji/durably-plugins'
