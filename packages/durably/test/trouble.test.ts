import { readFileSync, writeFileSync } from 'node:fs'
import { createClient } from '@libsql/client'
import SqliteDatabase from 'better-sqlite3'
import { type Dialect, sql } from 'kysely'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { betterSqlite3 } from '../src/better-sqlite3'
import type { DurablyEvent, SqlDurably } from '../src/index'
import { libsql } from '../src/libsql'
import { postgres } from '../src/postgres'
import { createFakeClock } from '../src/testing'
import { type Database, DATABASES, FILES, LIBSQL, POSTGRES, postgresPlace } from './databases'
import { newFile, openMigrated, openOn } from './instances'

function define(durably: SqlDurably) {
  return durably.defineJob({ name: 'one', input: z.unknown() }, (ctx) => ctx.run('step', () => 1))
}

function next<T extends DurablyEvent['type']>(durably: SqlDurably, type: T): Promise<DurablyEvent<T>> {
  return new Promise((resolve) => {
    const off = durably.on(type, (event) => {
      off()
      resolve(event)
    })
  })
}

async function fileWithOneRun(): Promise<string> {
  const file = newFile()
  const durably = await openMigrated(LIBSQL.dialect(file))
  await define(durably).trigger(null)
  await durably.close()
  return file
}

describe.each(DATABASES)('on $name', ({ dialect }) => {
  it('a database that was not migrated says so to everyone, and a worker waits for it', async () => {
    const durably = openOn(dialect(newFile()))
    const job = define(durably)
    const refused = { code: 'NOT_MIGRATED', message: expect.stringContaining('Call await durably.migrate() first.') }
    await expect(job.trigger(null)).rejects.toMatchObject(refused)
    await expect(durably.getRuns()).rejects.toMatchObject(refused)
    await expect(durably.runUntilIdle()).rejects.toMatchObject(refused)
    const said = next(durably, 'worker:error')
    durably.start()
    expect(await said).toMatchObject({ code: 'NOT_MIGRATED' })
    await durably.migrate()
    await durably.stop()
    durably.start()
    expect(await job.triggerAndWait(null)).toMatchObject({ output: 1 })
  })

  it('a table that is being changed is trouble, which passes, and not the failure of a step', async () => {
    const place = newFile()
    const durably = await openMigrated(dialect(place), { pollingInterval: 20 })
    const rename = (from: string, to: string) =>
      sql`alter table durably_steps rename column ${sql.ref(from)} to ${sql.ref(to)}`.execute(durably.db)
    const done: string[] = []
    const job = durably.defineJob({ name: 'one', input: z.unknown() }, async (ctx) => {
      await ctx.run('step', async () => {
        done.push('step')
        await rename('output', 'result')
      })
      await ctx.transaction('transaction', async () => {
        done.push('transaction')
      })
      return 1
    })
    const said = next(durably, 'worker:error')
    const running = job.triggerAndWait(null)
    durably.start()
    expect(await said).toMatchObject({ during: 'commit', code: 'STORAGE_UNAVAILABLE' })
    await rename('result', 'output')
    expect(await running).toMatchObject({ output: 1 })
    expect(done).toEqual(['step', 'transaction'])
  })
})

describe.each(FILES)('on $name', ({ name, dialect }) => {
  it('a corrupt file is refused and left as it is', async () => {
    const file = newFile()
    const garbage = 'this is no database, but somebody may still need it\n'.repeat(200)
    writeFileSync(file, garbage)
    const durably = openOn(dialect(file))
    await expect(durably.migrate()).rejects.toMatchObject({ code: 'STORAGE_CORRUPT' })
    await expect(define(durably).trigger(null)).rejects.toMatchObject({ code: 'STORAGE_CORRUPT' })
    expect(readFileSync(file, 'utf8')).toBe(garbage)
  })

  it('a table of somebody else under our name is not touched', async () => {
    const file = newFile()
    const other = new SqliteDatabase(file)
    other.exec('create table durably_runs (mine text); insert into durably_runs values (1)')
    const durably = openOn(dialect(file))
    await expect(durably.migrate()).rejects.toMatchObject({ code: 'MIGRATION_FAILED' })
    expect(other.prepare('select * from durably_runs').all()).toEqual([{ mine: '1' }])
    expect(other.prepare("select name from sqlite_master where type = 'table'").all()).toEqual([
      { name: 'durably_runs' },
    ])
    other.close()
  })

  if (name !== 'betterSqlite3()') return

  it('a folder that does not exist is one clear error', async () => {
    const durably = openOn(dialect(`${newFile()}/missing/app.db`))
    await expect(durably.migrate()).rejects.toMatchObject({ code: 'STORAGE_CANNOT_OPEN' })
  })
})

describe('a file that cannot be written', () => {
  it('can be read, and says STORAGE_READONLY to each write', async () => {
    const file = await fileWithOneRun()
    const durably = openOn(betterSqlite3({ filename: file, options: { readonly: true } }))
    const job = define(durably)
    expect(await durably.getRuns()).toMatchObject([{ status: 'pending' }])
    await expect(job.trigger(null)).rejects.toMatchObject({ code: 'STORAGE_READONLY' })
    const said = next(durably, 'worker:error')
    durably.start()
    expect(await said).toMatchObject({ code: 'STORAGE_READONLY' })
    expect(durably.health()).toMatchObject({ worker: 'running' })
    expect(await durably.getRuns()).toMatchObject([{ status: 'pending' }])
  })
})

/** A dialect on a connection of the application's, and how the application closes it. */
interface Closable extends Database {
  open(file: string): { readonly dialect: Dialect; close(): void }
}

const CLOSABLE: readonly Closable[] = [
  {
    ...LIBSQL,
    open(file) {
      const client = createClient({ url: `file:${file}` })
      return { dialect: libsql({ client }), close: () => client.close() }
    },
  },
  {
    ...LIBSQL,
    name: 'betterSqlite3()',
    open(file) {
      const database = new SqliteDatabase(file)
      return { dialect: betterSqlite3({ database }), close: () => database.close() }
    },
  },
  {
    ...POSTGRES,
    open(file) {
      const pool = new pg.Pool({ connectionString: postgresPlace(file) })
      return { dialect: postgres({ pool }), close: () => void pool.end() }
    },
  },
]

describe.each(CLOSABLE)('a database that is closed under a running worker of $name', ({ dialect: connect, open }) => {
  it('is trouble of the worker, which says so and lives, and never of the run', async () => {
    const file = newFile()
    const { dialect, close } = open(file)
    // The engine's own time stands still, so that its patience with a database that is gone costs none here.
    const clock = createFakeClock()
    const durably = await openMigrated(dialect, { workerId: 'cut-off', environment: { clock } })
    const failed: string[] = []
    durably.on('run:fail', ({ runId }) => failed.push(runId))
    let ran = 0
    const job = durably.defineJob({ name: 'two', input: z.unknown() }, async (ctx) => {
      await ctx.run('first', () => ++ran)
      await ctx.run('second', () => {
        close()
        return 2
      })
    })
    const said = next(durably, 'worker:error')
    durably.start()
    const { id } = await job.trigger(null)
    expect(await said).toMatchObject({ workerId: 'cut-off', code: expect.stringMatching(/^STORAGE_/) })
    expect(durably.health().worker).toBe('running')
    await expect(job.trigger(null)).rejects.toMatchObject({
      name: expect.stringMatching(/StorageError|UnknownOutcomeError/),
    })
    const closed = durably.close()
    await clock.advance(60_000)
    await closed
    expect(failed).toEqual([])

    const again = await openMigrated(connect(file))
    expect(await again.getRun(id)).toMatchObject({ status: 'running', ownerId: 'cut-off', error: null })
    again.defineJob({ name: 'two', input: z.unknown() }, async (ctx) => {
      await ctx.run('first', () => ++ran)
      return ctx.run('second', () => 'second time')
    })
    await again.recover({ workerId: 'cut-off' })
    await again.runUntilIdle()
    expect(await again.getRun(id)).toMatchObject({ status: 'completed', output: 'second time' })
    expect(ran).toBe(1)
  })
})
