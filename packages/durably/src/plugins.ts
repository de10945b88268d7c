export {
  blobArchive,
  withLogPersistence,
  withLogRetention,
  withRetention,
  withStatistics,
  withTabLeader,
} from '@coji/durably-plugins'
export type {
  BlobStore,
  LogPersistenceOptions,
  LogRetentionOptions,
  RetentionOptions,
  StatisticsOptions,
  TabLeaderOptions,
} from '@coji/durably-plugins'
