import { paced } from '../../../../../test/pace'
export type QueueDriver = 'libsql' | 'better-sqlite3' | 'postgres'

export interface QueueWorkerConfig {
  readonly driver: QueueDriver
  /** A file, or the URL of a database. */
  readonly place: string
  readonly witness: string
}

/** For processes that are killed so often that five attempts are not enough, and for the one that watches them. */
export const MORTAL = {
  pollingInterval: 50,
  heartbeatInterval: 500,
  staleThreshold: paced(10_000),
  retry: { maxAttempts: 10, delay: 5 },
  maxCrashes: 10,
} as const
