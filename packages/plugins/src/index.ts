export { withLogPersistence, type LogPersistenceOptions } from './log-persistence'
export { withRetention, type RetentionOptions } from './retention'
