import { LibsqlDialect } from '@libsql/kysely-libsql'
import type { Dialect } from 'kysely'
import pg from 'pg'
import { afterEachFile, beforeEachFile } from '../../../test/leftovers'
import { createDatabase, type PostgresDatabase } from '../../../test/postgres'
import { betterSqlite3 } from '../src/better-sqlite3'
import { libsql } from '../src/libsql'
import { postgres } from '../src/postgres'
import { newFile } from './instances'
import { inLane } from '../../../test/scale'

export interface Database {
  readonly name: string
  /** The same place for the same file, also on a database that is none. */
  dialect(file: string): Dialect
}

export const LIBSQL: Database = { name: 'libsql()', dialect: (file) => libsql(`file:${file}`) }

export const BETTER_SQLITE3: Database = { name: 'betterSqlite3()', dialect: (file) => betterSqlite3(file) }

export const POSTGRES: Database = {
  name: 'postgres()',
  dialect: (file) => postgres({ connectionString: postgresPlace(file) }),
}

/** Those that are one file. What differs between them is the contract's: the quick lane takes the one most people begin with. */
export const FILES = inLane<Database>(
  [
    LIBSQL,
    BETTER_SQLITE3,
    { name: 'a bare LibsqlDialect', dialect: (file) => new LibsqlDialect({ url: `file:${file}` }) },
  ],
  (one) => one === LIBSQL,
)

/** Everything at the public API holds on each of these. */
export const DATABASES: readonly Database[] = [...FILES, POSTGRES]

let database: PostgresDatabase | undefined
const places = new Map<string, string>()
const PLACES = 100

beforeEachFile(async () => {
  if (database !== undefined) return
  database = await createDatabase()
  const client = new pg.Client({ connectionString: database.url })
  await client.connect()
  await client.query(Array.from({ length: PLACES }, (_, n) => `create schema place_${n}`).join(';'))
  await client.end()
})

afterEachFile(async () => {
  if (places.size === 0) return
  await database?.drop()
  database = undefined
  places.clear()
})

/** The URL of an empty schema of a test's own: creating a database for each would take long. */
export function postgresPlace(file = newFile()): string {
  if (database === undefined) throw new Error('There is no database before the tests of the file begin.')
  const schema = places.get(file) ?? `place_${places.size}`
  places.set(file, schema)
  if (places.size > PLACES) throw new Error(`More than ${PLACES} tests of one file want a place on Postgres.`)
  const url = new URL(database.url)
  url.searchParams.set('options', `-c search_path=${schema}`)
  return url.href
}
