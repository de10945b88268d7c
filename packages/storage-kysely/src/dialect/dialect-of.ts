import { InvalidOptionError } from '@coji/durably-core'
import { type DialectAdapter, PostgresAdapter, SqliteAdapter } from 'kysely'
import type { SqlDialect } from './dialect'
import { postgres } from './postgres'
import { sqlite } from './sqlite'

/** Which SQL a database speaks, by what Kysely's dialect says of it. */
export function dialectOf(adapter: DialectAdapter): SqlDialect {
  if (adapter instanceof SqliteAdapter) return sqlite
  if (adapter instanceof PostgresAdapter) return postgres
  // Another copy of Kysely in the process has classes of its own.
  const name = typeof adapter === 'object' && adapter !== null ? adapter.constructor.name : String(adapter)
  if (name.includes('Sqlite')) return sqlite
  if (name.includes('Postgres')) return postgres
  throw new InvalidOptionError(`durably works on SQLite and Postgres. createAdapter() of the dialect gives ${name}.`)
}
