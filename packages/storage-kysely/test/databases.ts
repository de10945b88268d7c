import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PGlite } from '@electric-sql/pglite'
import { LibsqlDialect } from '@libsql/kysely-libsql'
import Database from 'better-sqlite3'
import { type Dialect, PostgresDialect, SqliteDialect } from 'kysely'
import pg from 'pg'
import { beforeAll } from 'vitest'
import { betterSqlite3 } from '../src/drivers/better-sqlite3'
import { libsql } from '../src/drivers/libsql'
import { postgres } from '../src/drivers/postgres'
import { afterEachFile } from '../../../test/leftovers'
import { createDatabase, type PostgresDatabase } from '../../../test/postgres'
import { serveHrana } from './hrana-server'
import { pgliteDialect } from './pglite-dialect'

/** One database that dialects can be opened on again and again. */
export interface OpenDatabase {
  /** The file, or the URL. */
  readonly location: string
  /** Of the tables, where the connection does not say. */
  readonly schema?: string
  connect(): Dialect
  dispose(): Promise<void>
}

export interface TestDatabase {
  readonly name: string
  open(): Promise<OpenDatabase>
}

const ALL: readonly TestDatabase[] = [
  { name: 'better-sqlite3', open: () => onFile((file) => betterSqlite3(file)) },
  { name: 'better-sqlite3-bare', open: () => onFile((file) => new SqliteDialect({ database: new Database(file) })) },
  { name: 'libsql', open: () => onFile((file) => libsql(`file:${file}`)) },
  { name: 'libsql-bare', open: () => onFile((file) => new LibsqlDialect({ url: `file:${file}` })) },
  { name: 'libsql-http', open: openHttp },
  { name: 'postgres', open: () => onPostgres((url) => postgres({ connectionString: url })) },
  { name: 'postgres-bare', open: () => onPostgres((url) => new PostgresDialect({ pool: poolOf(url) })) },
  { name: 'pglite', open: openPglite },
]

/** Those that live in a file of this machine. */
export const isFile = ({ name }: TestDatabase) =>
  name.startsWith('better-sqlite3') || (name.startsWith('libsql') && name !== 'libsql-http')

/** What most people use: one for each way of talking to a database. */
export const isUsual = ({ name }: TestDatabase) => ['better-sqlite3', 'libsql', 'postgres'].includes(name)

/** Chosen by `DATABASES=a,b`; a name that does not exist is an error, so that nothing is left out by a slip. */
export const DATABASES: readonly TestDatabase[] = chosen(process.env['DATABASES'])

function chosen(names: string | undefined): readonly TestDatabase[] {
  if (names === undefined || names === '') return ALL
  return names.split(',').map((name) => {
    const database = ALL.find((candidate) => candidate.name === name)
    if (database === undefined) throw new Error(`There is no database "${name}" among ${ALL.map((one) => one.name)}.`)
    return database
  })
}

export function tempFile(): { readonly file: string; remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), 'durably-'))
  return { file: join(folder, 'test.db'), remove: () => rmSync(folder, { recursive: true, force: true }) }
}

async function onFile(connect: (file: string) => Dialect): Promise<OpenDatabase> {
  const { file, remove } = tempFile()
  return { location: file, connect: () => connect(file), dispose: async () => remove() }
}

async function openHttp(): Promise<OpenDatabase> {
  const { file, remove } = tempFile()
  const server = await serveHrana(file)
  return {
    location: server.url,
    connect: () => libsql(server.url),
    async dispose() {
      await server.close()
      remove()
    },
  }
}

/** Some take seconds to start, which is not the time of the test that comes first. */
export function startDatabases(databases: readonly TestDatabase[]): void {
  beforeAll(async () => {
    for (const one of databases) await (await one.open()).dispose()
  })
}

let database: Promise<PostgresDatabase> | null = null

/** One database for all tests of a file, because creating one takes long: each test has a schema of its own. */
afterEachFile(async () => {
  const used = database
  database = null
  await (await used)?.drop()
})

async function onPostgres(connect: (url: string) => Dialect): Promise<OpenDatabase> {
  database ??= createDatabase()
  const { url } = await database
  const admin = new pg.Client({ connectionString: url })
  await admin.connect()
  const schema = nextSchema()
  await admin.query(`create schema ${schema}`)
  const own = new URL(url)
  own.searchParams.set('options', `-c search_path=${schema}`)
  return {
    location: own.href,
    connect: () => connect(own.href),
    async dispose() {
      await admin.query(`drop schema ${schema} cascade`)
      await admin.end()
    },
  }
}

/** Connections die when their database is dropped. */
function poolOf(connectionString: string): pg.Pool {
  const pool = new pg.Pool({ connectionString })
  pool.on('connect', (client) => client.on('error', () => {}))
  return pool.on('error', () => {})
}

let shared: Promise<PGlite> | null = null
let schemas = 0

function nextSchema(): string {
  schemas += 1
  return `test_${schemas}`
}

/** One for all, in this process, because starting it takes seconds: each test has a schema of its own. */
async function openPglite(): Promise<OpenDatabase> {
  shared ??= PGlite.create()
  const pglite = await shared
  const schema = nextSchema()
  await pglite.exec(`create schema ${schema}`)
  return {
    location: schema,
    connect: () => pgliteDialect(pglite, schema),
    dispose: async () => void (await pglite.exec(`drop schema ${schema} cascade`)),
  }
}
