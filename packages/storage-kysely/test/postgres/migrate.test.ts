import { randomUUID } from 'node:crypto'
import { MigrationError } from '@coji/durably-core/storage'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { createDatabase, type PostgresDatabase } from '../../../../test/postgres'
import { scaled } from '../../../../test/scale'
import { SCHEMA_VERSION } from '../../src/migrations'
import { createKyselyStorage, type KyselyStorage } from '../../src'
import { postgres } from '../../src/drivers/postgres'
import { claim, COMPLETE, newCommit, newRun } from '../builders'
import { counting } from '../counting'
import { buildPrograms, finished, startProgram } from '../programs'
import { migrated } from '../migrated'
import { Watch } from './orders'
import { schemaOf } from './schema'

let database: PostgresDatabase
let watch: Watch

beforeAll(async () => {
  database = await createDatabase()
  watch = await Watch.open(database.url)
})

afterAll(async () => {
  await watch.end()
  await database.drop()
})

interface Place {
  readonly name: string
  readonly url: string
  storage(tablePrefix?: string): KyselyStorage
}

/** A schema of a test's own. */
async function inSchema(use: (place: Place) => Promise<void>): Promise<void> {
  const name = `s_${randomUUID().replaceAll('-', '')}`
  await watch.query(`create schema ${name}`)
  const url = new URL(database.url)
  url.searchParams.set('options', `-c search_path=${name}`)
  const open: KyselyStorage[] = []
  const storage = (tablePrefix = 'durably_') => {
    const dialect = postgres({ connectionString: url.href, max: 3, listen: false })
    const one = createKyselyStorage({ dialect, tablePrefix })
    open.push(one)
    return one
  }
  try {
    await use({ name, url: url.href, storage })
  } finally {
    for (const one of open) await one.close()
    await watch.query(`drop schema ${name} cascade`)
  }
}

const tablesIn = async (schema: string) =>
  (
    await watch.query<{ name: string }>(`select tablename as name from pg_tables where schemaname = $1 order by 1`, [
      schema,
    ])
  ).map(({ name }) => name)

async function works(storage: KyselyStorage): Promise<void> {
  await storage.checkSchema()
  await storage.enqueue([newRun()])
  const [run] = await claim(storage)
  if (run === undefined) throw new Error('Nothing was claimed.')
  expect(await storage.commit([newCommit(run, { outcome: COMPLETE })])).toMatchObject([{ kept: true }])
}

describe('migrate() on Postgres', () => {
  it('makes the committed schema, under any names', async () => {
    await inSchema(async ({ name, storage }) => {
      await storage().migrate()
      const schema = await schemaOf(watch, name)
      await expect(schema).toMatchFileSnapshot('../schema.postgres.sql')
      await watch.query(`drop schema ${name} cascade; create schema ${name}`)
      await storage('').migrate()
      expect(await schemaOf(watch, name)).toBe(schema.replaceAll('durably_', ''))
      await works(storage(''))
    })
  })

  it('is done once by six that start at the same time', async () => {
    for (let round = 0; round < scaled({ quick: 3, full: 20 }); round++) {
      await inSchema(async ({ name, storage }) => {
        const six = Array.from({ length: 6 }, () => storage())
        await Promise.all(six.map(migrated))
        await Promise.all(six.map((one) => one.checkSchema()))
        expect(await watch.query(`select version from ${name}.durably_schema_versions`)).toEqual(
          Array.from({ length: SCHEMA_VERSION }, (_, n) => ({ version: n + 1 })),
        )
      })
    }
  })

  it('is done once by six processes', async () => {
    onTestFinished(await buildPrograms())
    for (let round = 0; round < scaled({ quick: 1, full: 20 }); round++) {
      await inSchema(async ({ url, storage }) => {
        const processes = Array.from({ length: 6 }, () => finished(startProgram('migrate', ['postgres', url])))
        for (const result of await Promise.all(processes)) expect(result).toMatchObject({ code: 0, stderr: '' })
        await works(storage())
      })
    }
  })

  it('leaves nothing behind when its connection is killed halfway, and can be done again', async () => {
    await inSchema(async ({ name, storage }) => {
      // Stops the migration at its last index.
      await watch.query(`create function ${name}.wait() returns event_trigger language plpgsql as $$ begin
        if current_schema() = '${name}' then perform pg_advisory_xact_lock(4711); end if; end $$`)
      await watch.query(`create event trigger wait_${name} on ddl_command_end when tag in ('CREATE INDEX')
        execute function ${name}.wait()`)
      await watch.query('select pg_advisory_lock(4711)')
      const migration = storage().migrate()
      const failed = expect(migration).rejects.toMatchObject({ code: 'STORAGE_UNAVAILABLE' })
      const waiting = () =>
        watch.query(`select pid from pg_locks where locktype = 'advisory' and objid = 4711 and not granted`)
      await expect.poll(waiting, { interval: 5 }).toHaveLength(1)
      await watch.query(`select pg_terminate_backend(pid) from pg_locks where objid = 4711 and not granted`)
      await failed
      expect(await tablesIn(name)).toEqual([])
      await watch.query('select pg_advisory_unlock(4711)')
      await watch.query(`drop event trigger wait_${name}`)
      await storage().migrate()
      await works(storage())
    })
  })

  it.each([
    ['a table', 'create table runs (id integer)'],
    ['a table of versions', 'create table schema_versions (version text, applied_at text)'],
    ['a view', 'create view steps as select 1 as one'],
    ['an index', 'create table mine (id integer); create index runs_claim on mine (id)'],
  ])('does not take %s of the application for its own', async (_what, statement) => {
    await inSchema(async ({ name, storage }) => {
      await watch.query(`set search_path = ${name}`)
      await watch.query(statement)
      const before = await tablesIn(name)
      await expect(storage('').migrate()).rejects.toThrow(MigrationError)
      await expect(storage('').migrate()).rejects.toThrow(/tablePrefix/)
      expect(await tablesIn(name)).toEqual(before)
      await storage().migrate()
      await works(storage())
      await watch.query('set search_path = public')
    })
  })

  it.each(['LATIN1', 'SQL_ASCII'])('goes on where there are tables already in a database of %s', async (encoding) => {
    const name = `encoding_${randomUUID().replaceAll('-', '')}`
    await watch.query(
      `create database ${name} encoding '${encoding}' template template0 locale_provider libc locale 'C'`,
    )
    const url = new URL(database.url)
    url.pathname = `/${name}`
    const older = await Watch.open(url.href)
    const storage = createKyselyStorage({ dialect: postgres({ connectionString: url.href, listen: false }) })
    try {
      await inSchema(async (place) => {
        const { dialect, messages } = counting(postgres({ connectionString: place.url, listen: false }))
        const elsewhere = createKyselyStorage({ dialect })
        await elsewhere.migrate()
        await elsewhere.close()
        const [all = []] = messages.filter((queries) => queries.length > 1)
        const [, ofSecond] = all.flatMap(({ sql }, at) => (/^\s*insert into \S*schema_versions/.test(sql) ? [at] : []))
        for (const { sql, parameters } of all.slice(0, ofSecond)) await older.query(sql, parameters)
        expect(ofSecond).toBeGreaterThan(1)
      })
      await expect(storage.checkSchema()).rejects.toMatchObject({ code: 'NOT_MIGRATED' })
      await storage.migrate()
      await works(storage)
    } finally {
      await storage.close()
      await older.end()
      await watch.query(`drop database ${name} with (force)`)
    }
  })

  it('keeps two installations in one schema apart', async () => {
    await inSchema(async ({ storage }) => {
      const both = [storage('a_'), storage('b_')]
      await Promise.all(both.map((one) => one.migrate()))
      for (const one of both) {
        await works(one)
        expect(await one.counts({})).toMatchObject({ completed: 1, pending: 0 })
      }
    })
  })
})
