import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LibsqlDialect } from '@libsql/kysely-libsql'
import Database from 'better-sqlite3'
import { type Dialect, SqliteDialect } from 'kysely'
import { betterSqlite3 } from '../src/drivers/better-sqlite3'
import { libsql } from '../src/drivers/libsql'
import { serveHrana } from './hrana-server'

/** One database that dialects can be opened on again and again. */
export interface OpenDatabase {
  readonly file: string
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
]

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
  return { file, connect: () => connect(file), dispose: async () => remove() }
}

async function openHttp(): Promise<OpenDatabase> {
  const { file, remove } = tempFile()
  const server = await serveHrana(file)
  return {
    file,
    connect: () => libsql(server.url),
    async dispose() {
      await server.close()
      remove()
    },
  }
}
