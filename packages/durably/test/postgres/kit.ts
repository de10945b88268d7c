import pg from 'pg'
import { afterEachTest } from '../../../../test/leftovers'
import type { DatabaseOptions, SqlDurably } from '../../src/index'
import { postgres, type PostgresConfig } from '../../src/postgres'
import { postgresPlace } from '../databases'
import { openMigrated, openOn } from '../instances'

/** Nothing in these tests may be found by polling unless it says so. */
export const WITHOUT_POLLING = { pollingInterval: 3_600_000 } as const

/** One place on Postgres, instances on it, and sessions that look at the server from outside. */
export interface Place {
  readonly url: string
  open(options?: Settings): SqlDurably
  query<T extends pg.QueryResultRow>(text: string, values?: readonly unknown[]): Promise<readonly T[]>
  /** Process ids of the sessions that listen. */
  listeners(): Promise<readonly number[]>
}

type Settings = Partial<Omit<DatabaseOptions, 'dialect' | 'db'>> & {
  readonly listen?: boolean
  readonly prepare?: boolean
  readonly max?: number
}

const opened: { end(): Promise<void> }[] = []

afterEachTest(async () => {
  for (const each of opened.splice(0)) await each.end()
})

/** A pool as an application has it, closed after the test. */
export function newPool(url: string, options: pg.PoolConfig = {}): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, ...options })
  opened.push({ end: async () => void (pool.ended || (await pool.end())) })
  return pool
}

export async function newPlace(): Promise<Place> {
  const url = postgresPlace()
  const observer = newPool(url, { max: 1 }).on('error', () => {})
  await (await openMigrated(postgres({ connectionString: url }))).close()
  const query: Place['query'] = async (text, values = []) => (await observer.query(text, [...values])).rows
  return {
    url,
    query,
    open({ listen, prepare, max, ...options } = {}) {
      const config: PostgresConfig = {
        connectionString: url,
        ...(listen !== undefined && { listen }),
        ...(prepare !== undefined && { prepare }),
        ...(max !== undefined && { max }),
      }
      return openOn(postgres(config), { ...WITHOUT_POLLING, ...options })
    },
    async listeners() {
      const rows = await query<{ readonly pid: number }>(
        `select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and state = 'idle'
          and (query ilike 'listen %' or query like '%pg_listening_channels%')`,
      )
      return rows.map(({ pid }) => pid)
    },
  }
}

/** A connection of a test's own, closed after it. */
export async function newSession(url: string): Promise<pg.Client> {
  const session = new pg.Client({ connectionString: url })
  session.on('error', () => {})
  await session.connect()
  opened.push(session)
  return session
}
