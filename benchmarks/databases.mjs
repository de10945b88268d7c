import { rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import pg from 'pg'

/** SQLite's numbers for `synchronous`, and the settings behind the two words of durably. */
const SYNCHRONOUS = ['off', 'normal', 'full', 'extra']
export const SYNCHRONOUS_OF = { fast: 'normal', safe: 'full' }

/** The library that the client of libSQL is built on, and durably uses for files. */
export function nativeLibsql() {
  const client = createRequire(import.meta.url).resolve('@libsql/client')
  return createRequire(client)('libsql')
}

/** `better-sqlite3 fast` → where one measurement keeps its data: nothing of an earlier one is there. */
export async function freshDatabase(name, { folder, postgres }) {
  const [driver, durability = null] = name.split(' ')
  if (driver === 'memory') return { driver, durability }
  if (driver === 'postgres') return { driver, durability, url: await freshPostgres(postgres) }
  const file = join(folder, 'bench.sqlite3')
  for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(file + suffix, { force: true })
  return { driver, durability, file }
}

export const POSTGRES_NAME = 'durably_bench'

async function freshPostgres(url) {
  await onPostgres(url, async (client) => {
    await client.query(`drop database if exists ${POSTGRES_NAME} with (force)`)
    await client.query(`create database ${POSTGRES_NAME}`)
  })
  const fresh = new URL(url)
  fresh.pathname = `/${POSTGRES_NAME}`
  return fresh.href
}

async function onPostgres(url, act) {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return await act(client)
  } finally {
    await client.end()
  }
}

/** One statement on a connection beside the measured one; answers the first value of the first row. */
export async function beside({ file, url }, statement) {
  if (url) return onPostgres(url, async (client) => first((await client.query(statement)).rows[0]))
  const connection = new Database(file, { timeout: 10_000 })
  try {
    const prepared = connection.prepare(statement)
    return prepared.reader ? first(prepared.get()) : prepared.run().changes
  } finally {
    connection.close()
  }
}

function first(row) {
  return Object.values(row ?? {})[0]
}

/** What the connection says that does the work. */
export function durabilityOfSqlite(connection) {
  const [journal, synchronous] = ['journal_mode', 'synchronous'].map((name) =>
    connection.pragma(name, { simple: true }),
  )
  return durabilityName(journal, synchronous)
}

export function durabilityOfNativeLibsql(connection) {
  const [journal, synchronous] = ['journal_mode', 'synchronous'].map((name) =>
    first(connection.prepare(`pragma ${name}`).all()[0]),
  )
  return durabilityName(journal, synchronous)
}

export async function durabilityOfLibsql(client) {
  const [journal, synchronous] = [
    await client.execute('pragma journal_mode'),
    await client.execute('pragma synchronous'),
  ]
  return durabilityName(first(journal.rows[0]), first(synchronous.rows[0]))
}

function durabilityName(journal, synchronous) {
  return `${journal}, ${SYNCHRONOUS[synchronous] ?? synchronous}`
}

/** Peers keep their pool to themselves; a session of the same role and database has the same settings. */
export async function durabilityOfPostgres(url) {
  const commit = await beside({ url }, 'show synchronous_commit')
  return `synchronous_commit ${commit}, fsync ${await beside({ url }, 'show fsync')}`
}
