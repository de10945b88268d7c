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
export type {
  DraftOptions,
  EventOfMessage,
  EventOfRun,
  EventOfSchedule,
  EventOfStep,
  Gathering,
  Hooks,
  NumberedEvent,
  RecordedHistory,
  RunDraft,
  RunDrafts,
  RunInfo,
  StartedTerm,
  StepInfo,
  Uninstall,
  WorkerSwitch,
} from '@coji/durably-core/extend'
