export { blobArchive, withLogPersistence, withLogRetention, withRetention, withTabLeader } from '@coji/durably-plugins'
export type {
  BlobStore,
  LogPersistenceOptions,
  LogRetentionOptions,
  RetentionOptions,
  TabLeaderOptions,
} from '@coji/durably-plugins'
