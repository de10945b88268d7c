export { withLogPersistence, withRetention, withStatistics, withTabLeader } from '@coji/durably-plugins'
export type {
  LogPersistenceOptions,
  RetentionOptions,
  StatisticsOptions,
  TabLeaderOptions,
} from '@coji/durably-plugins'
