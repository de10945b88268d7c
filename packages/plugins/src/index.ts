export { withLogPersistence, type LogPersistenceOptions } from './log-persistence'
export { withRetention, type RetentionOptions } from './retention'
export { withStatistics, type StatisticsOptions } from './statistics'
export { withTabLeader, type TabLeaderOptions } from './tab-leader'
