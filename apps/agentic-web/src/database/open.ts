import { createDurably, type SqlDurably } from '@coji/durably'
import { withLogPersistence } from '@coji/durably/plugins'
import { postgres } from '@coji/durably/postgres'
import pg from 'pg'
import type { Config } from '../config'
import { createVault, type Vault } from '../secrets/vault'
import { migrateTables } from './migrate'
import type { Tables } from './tables'

/** What every process of the application holds: the instance, the connections, and what opens sealed values. */
export interface Database {
  readonly durably: SqlDurably<Tables>
  readonly db: SqlDurably<Tables>['db']
  readonly pool: pg.Pool
  readonly vault: Vault
  close(): Promise<void>
}

export interface WorkerOptions {
  readonly concurrency?: number
  readonly workerId?: string | undefined
  readonly staleThreshold?: number
  readonly heartbeatInterval?: number
}

/** Opens the database and creates what is missing in it; any number of processes may at once. */
export async function openDatabase(config: Config, options: WorkerOptions = {}): Promise<Database> {
  const pool = new pg.Pool({
    connectionString: config.databaseUrl,
    max: config.databaseConnections,
    application_name: 'agentic-web',
    lock_timeout: 5000,
    statement_timeout: 30_000,
    idle_in_transaction_session_timeout: 10_000,
  })
  const { workerId, ...numbers } = options
  const durably = createDurably<Tables>({
    dialect: postgres({ pool }),
    ...numbers,
    ...(workerId !== undefined && { workerId }),
  })
  durably.use(withLogPersistence())
  await durably.migrate()
  await migrateTables(durably.db)
  return {
    durably,
    db: durably.db,
    pool,
    vault: createVault(config.secretKeys),
    async close() {
      await durably.close()
      await pool.end()
    },
  }
}
