import { createDurably, type SqlDurably } from '@coji/durably'
import { withLogPersistence } from '@coji/durably/plugins'
import { postgres } from '@coji/durably/postgres'
import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import type { Config } from '../config'
import { createVault, type Vault } from '../secrets/vault'
import { migrateTables } from './migrate'
import type { Tables } from './tables'

/** What every process of the application holds: the instance, the connections, and what opens sealed values. */
export interface Database {
  readonly durably: SqlDurably<Tables>
  readonly db: Kysely<Tables>
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

/** Of so many connections of runs, one for everything else. */
const OWN_SHARE = 2

/** Opens the database and creates what is missing in it; any number of processes may at once. */
export async function openDatabase(config: Config, options: WorkerOptions = {}): Promise<Database> {
  const { databaseUrl: connectionString, databaseConnections } = config
  // Connections of its own: what the chat reads never waits behind what runs write, nor the other way round.
  const max = Math.ceil(databaseConnections / OWN_SHARE)
  const pool = new pg.Pool({
    ...{ connectionString, max, application_name: 'agentic-web' },
    ...{ lock_timeout: 5000, statement_timeout: 30_000, idle_in_transaction_session_timeout: 10_000 },
  })
  // One that dies at rest is replaced at its next use; of one that dies in use, between two statements, the next one hears.
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })
  const { workerId, ...numbers } = options
  const durably = createDurably<Tables>({
    dialect: postgres({ connectionString, max: databaseConnections }),
    ...numbers,
    ...(workerId !== undefined && { workerId }),
  })
  durably.use(withLogPersistence())
  await durably.migrate()
  await migrateTables(db)
  return {
    durably,
    db,
    pool,
    vault: createVault(config.secretKeys),
    async close() {
      await durably.close()
      await db.destroy()
    },
  }
}
