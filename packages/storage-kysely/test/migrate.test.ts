import { MigrationError, NotMigratedError, SchemaTooNewError } from '@coji/durably-core/storage'
import Database from 'better-sqlite3'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { inLane, scaled } from '../../../test/scale'
import { createKyselyStorage, type KyselyStorage } from '../src'
import { betterSqlite3 } from '../src/drivers/better-sqlite3'
import { FENCES } from '../src/statement/fences'
import { createKyselyStorageWith } from '../src/kysely-storage'
import { SCHEMA_VERSION } from '../src/migrations'
import { claim, COMPLETE, newCommit, newRun, RECOVER_ALL, startRun } from './builders'
import { DATABASES, startDatabases, tempFile, isUsual } from './databases'
import { buildPrograms, finished, startProgram } from './programs'

const NEWER = SCHEMA_VERSION + 1

const WRITES: Readonly<Record<string, (storage: KyselyStorage, runId: string) => Promise<unknown>>> = {
  enqueue: (storage) => storage.enqueue([newRun()]),
  claim: (storage) => claim(storage),
  recover: (storage) => storage.recover(RECOVER_ALL),
  cancel: (storage, runId) => storage.command({ kind: 'cancel', runId, events: { cancelled: [], requested: [] } }),
  retry: (storage, runId) => storage.command({ kind: 'retry', runId, events: [] }),
  delete: (storage, runId) => storage.command({ kind: 'remove', runId }),
  purge: (storage) => storage.purge({ statuses: ['completed'], limit: 1 }),
  signal: (storage, runId) => storage.signals.send({ runId, name: 'go', payload: null, dedupeKey: null, events: [] }),
  transaction: (storage) => storage.transaction.run(async (trx) => storage.transaction.enqueue(trx, [newRun()])),
  "the application's own transaction": (storage) =>
    storage.db.transaction().execute(async (trx) => storage.transaction.enqueue(trx, [newRun()])),
}

describe('migrate', () => {
  let temp: ReturnType<typeof tempFile>
  const open: { close(): unknown }[] = []

  beforeEach(() => {
    temp = tempFile()
  })

  afterEach(async () => {
    for (const one of open.splice(0)) await one.close()
    temp.remove()
  })

  function storageOn(tablePrefix?: string): KyselyStorage {
    const storage = createKyselyStorage({
      dialect: betterSqlite3(temp.file),
      ...(tablePrefix !== undefined && { tablePrefix }),
    })
    open.push(storage)
    return storage
  }

  function raw(): Database.Database {
    const database = new Database(temp.file)
    open.push(database)
    return database
  }

  it('asks for migrate() on an empty database', async () => {
    const storage = storageOn()
    await expect(storage.checkSchema()).rejects.toThrow(NotMigratedError)
    await expect(storage.getRun('x')).rejects.toThrow(NotMigratedError)
    await expect(storage.enqueue([])).resolves.toEqual([])
  })

  it('can be called again', async () => {
    const storage = storageOn()
    await storage.migrate()
    await storage.migrate()
    await storage.checkSchema()
    expect(raw().prepare('select version, min_reader from durably_schema_versions').all()).toEqual([
      { version: 1, min_reader: 1 },
      { version: 2, min_reader: 2 },
      { version: 3, min_reader: 2 },
      { version: 4, min_reader: 2 },
      { version: 5, min_reader: 5 },
      { version: 6, min_reader: 5 },
      { version: 7, min_reader: 5 },
      { version: 8, min_reader: 5 },
      { version: 9, min_reader: 5 },
      { version: 10, min_reader: 5 },
      { version: 11, min_reader: 5 },
      { version: 12, min_reader: 5 },
      { version: 13, min_reader: 13 },
      { version: 14, min_reader: 13 },
      { version: 15, min_reader: 15 },
      { version: 16, min_reader: 15 },
      { version: 17, min_reader: 17 },
    ])
  })

  it('leaves what belongs to the application alone', async () => {
    const database = raw()
    database.pragma('user_version = 77')
    database.pragma('application_id = 4242')
    await storageOn().migrate()
    expect(database.pragma('user_version', { simple: true })).toBe(77)
    expect(database.pragma('application_id', { simple: true })).toBe(4242)
  })

  it('works with a newer schema that still allows this code', async () => {
    const storage = storageOn()
    await storage.migrate()
    raw().exec(`insert into durably_schema_versions values (${SCHEMA_VERSION + 1}, '2026-01-01T00:00:00.000Z', 1)`)
    await storage.checkSchema()
    await storage.migrate()
  })

  it('refuses a schema that needs newer code', async () => {
    const storage = storageOn()
    await storage.migrate()
    raw().exec(`insert into durably_schema_versions values (${NEWER}, '2026-01-01T00:00:00.000Z', ${NEWER})`)
    await expect(storage.checkSchema()).rejects.toThrow(SchemaTooNewError)
    await expect(storage.migrate()).rejects.toThrow(SchemaTooNewError)
  })

  it('writes nothing to a schema that needs newer code, however it came to see it', async () => {
    await storageOn().migrate()
    let nowMs = 0
    const dialect = () => betterSqlite3(temp.file)
    const trigger = createKyselyStorageWith({ dialect: dialect(), fences: FENCES, monotonic: () => nowMs })
    open.push(trigger)
    const run = await startRun(trigger)
    raw().exec(`insert into durably_schema_versions values (${NEWER}, '2026-01-01T00:00:00.000Z', ${NEWER})`)
    // It was looked at a moment ago, and is looked at again within a minute.
    await trigger.enqueue([newRun()])
    nowMs = 60_000
    const fresh = storageOn()
    for (const storage of [trigger, fresh]) {
      const before = raw().prepare('select * from durably_runs').all()
      for (const [name, write] of Object.entries(WRITES)) {
        await expect(write(storage, run.id), name).rejects.toThrow(SchemaTooNewError)
      }
      expect(raw().prepare('select * from durably_runs').all()).toEqual(before)
      expect(await storage.getRun(run.id)).toMatchObject({ status: 'running' })
      await expect(storage.getRuns({})).resolves.toHaveLength(2)
    }
    // What is under way ends as it began.
    expect(await trigger.commit([newCommit(run, { outcome: COMPLETE })])).toMatchObject([{ kept: true }])
  })

  it('asks for migrate() at each write until the tables are there', async () => {
    const storage = storageOn()
    for (const write of Object.values(WRITES)) await expect(write(storage, 'x')).rejects.toThrow(NotMigratedError)
    await storageOn().migrate()
    await expect(storage.enqueue([newRun()])).resolves.toHaveLength(1)
  })

  it('does not take a table of the application for its own', async () => {
    raw().exec('create table runs (id integer primary key, distance real)')
    const storage = storageOn('')
    await expect(storage.migrate()).rejects.toThrow(MigrationError)
    await expect(storage.migrate()).rejects.toThrow(/runs/)
    expect(raw().prepare(`select count(*) as n from sqlite_master where name = 'steps'`).get()).toEqual({ n: 0 })
  })

  it('does not take a table of versions for its own either', async () => {
    raw().exec('create table schema_versions (version text, applied_at text)')
    await expect(storageOn('').migrate()).rejects.toThrow(MigrationError)
  })

  it('does not take trouble for an empty database', async () => {
    const storage = storageOn()
    await storage.migrate()
    await storage.close()
    await expect(storage.migrate()).rejects.toMatchObject({ code: 'STORAGE_CLOSED' })
    await expect(storage.checkSchema()).rejects.toMatchObject({ code: 'STORAGE_CLOSED' })
  })

  it('keeps two installations in one file apart', async () => {
    const [a, b] = [storageOn('a_'), storageOn('b_')]
    await Promise.all([a.migrate(), b.migrate()])
    await a.checkSchema()
    await b.checkSchema()
  })
})

describe('many at once', () => {
  const databases = inLane(DATABASES, isUsual)
  startDatabases(databases)
  beforeAll(buildPrograms)

  for (const database of databases) {
    it(`${database.name}: 10 storages of one process`, async () => {
      const opened = await database.open()
      const storages = Array.from({ length: 10 }, () => createKyselyStorage({ dialect: opened.connect() }))
      await Promise.all(storages.map((storage) => storage.migrate()))
      await Promise.all(storages.map((storage) => storage.checkSchema()))
      for (const storage of storages) await storage.close()
      await opened.dispose()
    })
  }

  const processes = scaled({ quick: 4, full: 20 })

  for (const driver of inLane(['better-sqlite3', 'bare', 'libsql'], (one) => one !== 'bare')) {
    it(`${driver}: ${processes} processes`, async () => {
      const { file, remove } = tempFile()
      const children = Array.from({ length: processes }, () => startProgram('migrate', [driver, file]))
      const results = await Promise.all(children.map(finished))
      expect(results.map(({ code, stderr }) => [code, stderr])).toEqual(results.map(() => [0, '']))
      remove()
    })
  }
})
