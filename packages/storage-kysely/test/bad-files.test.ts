import { mkdirSync, truncateSync, writeFileSync } from 'node:fs'
import Database from 'better-sqlite3'
import { CompiledQuery, SqliteDialect } from 'kysely'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createKyselyStorage, type KyselyStorage } from '../src'
import { betterSqlite3 } from '../src/drivers/better-sqlite3'
import { libsql } from '../src/drivers/libsql'
import { newCommit, newRun, newStep, startRun } from './builders'
import { tempFile } from './databases'

const DRIVERS = [
  { name: 'better-sqlite3', connect: (file: string) => betterSqlite3(file) },
  { name: 'libsql', connect: (file: string) => libsql(`file:${file}`) },
]

for (const { name, connect } of DRIVERS) {
  describe(name, () => {
    let temp: ReturnType<typeof tempFile>
    const storages: KyselyStorage[] = []

    beforeEach(() => {
      temp = tempFile()
    })

    afterEach(async () => {
      for (const storage of storages.splice(0)) await storage.close()
      temp.remove()
    })

    function open(file = temp.file): KyselyStorage {
      const storage = createKyselyStorage({ dialect: connect(file) })
      storages.push(storage)
      return storage
    }

    it('names a file that is no database', async () => {
      writeFileSync(temp.file, 'this is a text and not a database, as long as a header must be '.repeat(100))
      await expect(open().migrate()).rejects.toMatchObject({
        code: 'STORAGE_CORRUPT',
        message: expect.stringContaining(temp.file) as string,
      })
    })

    it('says so when the folder does not exist', async () => {
      const file = `${temp.file}.d/none/test.db`
      await expect(open(file).migrate()).rejects.toMatchObject({ code: 'STORAGE_CANNOT_OPEN' })
    })

    it('says so when the path is a folder', async () => {
      mkdirSync(`${temp.file}.d`)
      await expect(open(`${temp.file}.d`).migrate()).rejects.toMatchObject({ code: 'STORAGE_CANNOT_OPEN' })
    })

    it('works again once the trouble is over', async () => {
      const file = `${temp.file}.d/test.db`
      const storage = open(file)
      await expect(storage.migrate()).rejects.toMatchObject({ code: 'STORAGE_CANNOT_OPEN' })
      mkdirSync(`${temp.file}.d`)
      await storage.migrate()
    })

    it('says STORAGE_CLOSED after close()', async () => {
      const storage = open()
      await storage.migrate()
      await storage.close()
      await storage.close()
      await expect(storage.getRun('x')).rejects.toMatchObject({ code: 'STORAGE_CLOSED' })
      await expect(storage.enqueue([newRun()])).rejects.toMatchObject({ code: 'STORAGE_CLOSED' })
      await expect(storage.transaction.run(async () => 1)).rejects.toMatchObject({ code: 'STORAGE_CLOSED' })
    })

    it('says STORAGE_CORRUPT for a torn file', async () => {
      const storage = open()
      await storage.migrate()
      await storage.db.executeQuery(CompiledQuery.raw('pragma wal_checkpoint(truncate)'))
      await storage.close()
      truncateSync(temp.file, 8192)
      const torn = open()
      await expect(torn.enqueue([newRun()])).rejects.toMatchObject({ code: 'STORAGE_CORRUPT' })
    })

    it('says STORAGE_REJECTED for what the database will never take', async () => {
      const storage = open()
      await storage.migrate()
      const run = await startRun(storage)
      const steps = [newStep({ name: 'same' }), newStep({ name: 'same' })]
      await expect(storage.commit([newCommit(run, { steps })])).rejects.toMatchObject({ code: 'STORAGE_REJECTED' })
      expect(await storage.getSteps(run.id)).toEqual([])
    })

    it('keeps good commits of a list with a bad one', async () => {
      const storage = open()
      await storage.migrate()
      const [good, bad] = [await startRun(storage), await startRun(storage)]
      const steps = [newStep({ name: 'same' }), newStep({ name: 'same' })]
      const list = [newCommit(bad, { steps }), newCommit(good, { steps: [newStep()] })]
      await expect(storage.commit(list)).rejects.toMatchObject({ code: 'STORAGE_REJECTED' })
      expect(await storage.getSteps(good.id)).toHaveLength(1)
      expect(await storage.getSteps(bad.id)).toEqual([])
    })
  })
}

describe('read-only', () => {
  it('reads, and says STORAGE_READONLY for a write', async () => {
    const { file, remove } = tempFile()
    const writer = createKyselyStorage({ dialect: betterSqlite3(file) })
    await writer.migrate()
    await writer.enqueue([newRun({ id: 'kept' })])
    const database = new Database(file, { readonly: true })
    const reader = createKyselyStorage({ dialect: new SqliteDialect({ database }) })
    expect(await reader.getRun('kept')).toMatchObject({ id: 'kept' })
    await expect(reader.enqueue([newRun()])).rejects.toMatchObject({ code: 'STORAGE_READONLY' })
    const viaHelper = createKyselyStorage({ dialect: betterSqlite3({ filename: file, options: { readonly: true } }) })
    expect(await viaHelper.getRun('kept')).toMatchObject({ id: 'kept' })
    await expect(viaHelper.enqueue([newRun()])).rejects.toMatchObject({ code: 'STORAGE_READONLY' })
    for (const storage of [viaHelper, reader, writer]) await storage.close()
    remove()
  })
})

describe('durability', () => {
  const levels = [
    { durability: 'safe', synchronous: 'full', survivesPowerCut: true },
    { durability: 'fast', synchronous: 'normal', survivesPowerCut: false },
  ] as const
  for (const { name, connect } of DRIVERS) {
    for (const { durability, ...expected } of levels) {
      it(`${name}: ${durability} is in force, in transactions and after them too`, async () => {
        const { file, remove } = tempFile()
        const storage = createKyselyStorage({ dialect: connect(file), durability })
        await storage.migrate()
        await storage.transaction.run(async () => undefined)
        expect(await storage.reportDurability()).toMatchObject({ journalMode: 'wal', ...expected })
        await storage.close()
        remove()
      })
    }
  }

  it('a bare dialect keeps its settings and tells them', async () => {
    const { file, remove } = tempFile()
    const storage = createKyselyStorage({ dialect: new SqliteDialect({ database: new Database(file) }) })
    expect(await storage.reportDurability()).toMatchObject({ journalMode: 'delete', synchronous: 'full' })
    await storage.close()
    remove()
  })

  it('a database in memory is allowed', async () => {
    const storage = createKyselyStorage({ dialect: betterSqlite3(':memory:') })
    await storage.migrate()
    expect(await storage.reportDurability()).toMatchObject({ journalMode: 'memory', survivesPowerCut: false })
    await storage.close()
  })
})
