import { once } from 'node:events'
import { sql } from 'kysely'
import { beforeAll, describe, expect, it, type TestContext } from 'vitest'
import { createKyselyStorage, type KyselyStorage } from '../src'
import { claim, COMPLETE, newCommit, newRun, newStep, startRun } from './builders'
import { DATABASES, isFile, type TestDatabase } from './databases'
import { buildPrograms, finished, startProgram } from './programs'

/** Those that live in a file of this machine. */
const FILES = DATABASES.filter(isFile)

beforeAll(buildPrograms)

/** A file of a test's own: much of what happens here is waiting, and the tests do it at the same time. */
async function newFile(database: TestDatabase, { onTestFinished }: TestContext) {
  const file = await database.open()
  const storages: KyselyStorage[] = []
  onTestFinished(async () => {
    for (const storage of storages) await storage.close()
    await file.dispose()
  })
  return {
    async open(): Promise<KyselyStorage> {
      const storage = createKyselyStorage({ dialect: file.connect(), durability: 'fast' })
      storages.push(storage)
      await storage.migrate()
      return storage
    },
    /**
     * The application's own connection to the same file, in a process of its own: locks of a file belong to a process,
     * and the SQLite of another library in this one would not see them.
     */
    async holdLock(): Promise<() => Promise<void>> {
      const child = startProgram('hold-lock', [file.location])
      if (child.stdout === null) throw new Error('The program has no output.')
      await once(child.stdout, 'data')
      return async () => {
        const closed = once(child, 'close')
        child.stdin?.write('go on')
        await closed
      }
    },
  }
}

for (const database of FILES) {
  describe.concurrent(database.name, () => {
    it("waits for the application's own write lock, and goes on after it", async (test) => {
      const { open, holdLock } = await newFile(database, test)
      const storage = await open()
      const run = await startRun(storage)
      const letGo = await holdLock()
      const commit = storage.commit([newCommit(run, { steps: [newStep()] })])
      const enqueue = storage.enqueue([newRun()])
      await letGo()
      expect((await commit)[0]).toMatchObject({ kept: true })
      expect((await enqueue)[0]).toMatchObject({ created: true })
      expect(await storage.getSteps(run.id)).toHaveLength(1)
    })

    it('gives up after 5 s, having written nothing, and works again afterwards', async (test) => {
      const { open, holdLock } = await newFile(database, test)
      const storage = await open()
      const run = await startRun(storage)
      const letGo = await holdLock()
      const commit = newCommit(run, { steps: [newStep()] })
      await expect(storage.commit([commit])).rejects.toMatchObject({ code: 'STORAGE_BUSY' })
      await letGo()
      expect(await storage.getSteps(run.id)).toEqual([])
      expect((await storage.commit([commit]))[0]).toMatchObject({ kept: true })
      expect(await storage.getSteps(run.id)).toHaveLength(1)
    })

    it('does not meet itself: 50 writers at once on each of two storages', async (test) => {
      const { open } = await newFile(database, test)
      const [a, b] = [await open(), await open()]
      const writes = Array.from({ length: 100 }, (_, index) => (index % 2 === 0 ? a : b).enqueue([newRun()]))
      expect((await Promise.all(writes)).flat().every(({ created }) => created)).toBe(true)
      expect(await a.counts({})).toMatchObject({ pending: 100 })
    })

    it('a body that reads first still gets its write through', async (test) => {
      const { open } = await newFile(database, test)
      const storage = await open()
      await startRun(storage, { id: 'reader' })
      const [run] = await storage.getRuns({ ids: ['reader'] })
      const second = await open()
      const { answer } = await storage.transaction.commitWith(async (trx) => {
        await trx.selectFrom('durably_runs').selectAll().execute()
        const meanwhile = second.enqueue([newRun()])
        meanwhile.catch(() => undefined)
        if (run === undefined) throw new Error('There is no run.')
        return { commit: newCommit(run, { steps: [newStep()] }), value: null }
      }, 5000)
      expect(answer).toMatchObject({ kept: true })
    })

    it('a call meanwhile waits for the transaction of the application, and no longer than 5 s', async (test) => {
      const { open } = await newFile(database, test)
      const storage = await open()
      let [begin, release] = [() => {}, () => {}]
      const begun = new Promise<void>((resolve) => (begin = resolve))
      const held = new Promise<void>((resolve) => (release = resolve))
      const transaction = storage.transaction.run(async (trx) => {
        await sql`create table mine (id integer)`.execute(trx)
        begin()
        await held
      })
      await begun
      await expect(storage.enqueue([newRun({ id: 'late' })])).rejects.toMatchObject({ code: 'CONNECTION_HELD' })
      const patient = storage.enqueue([newRun({ id: 'patient' })])
      release()
      await transaction
      expect((await patient)[0]).toMatchObject({ created: true })
      expect(await storage.getRun('late')).toBe(null)
    })
  })
}

describe('processes on one file', () => {
  for (const driver of ['better-sqlite3', 'bare', 'libsql']) {
    it(`${driver}: each run is done once`, async () => {
      const database = DATABASES.find(({ name }) => name === 'better-sqlite3') ?? FILES[0]
      if (database === undefined) throw new Error('No database on a file was chosen.')
      const file = await database.open()
      const storage = createKyselyStorage({ dialect: file.connect(), durability: 'fast' })
      await storage.migrate()
      await storage.enqueue(
        Array.from({ length: 100 }, (_, index) => newRun({ concurrencyKey: `key-${index % 7}`, concurrencyLimit: 2 })),
      )
      const results = await Promise.all(
        ['a', 'b', 'c'].map((name) => finished(startProgram('worker', [driver, file.location, name]))),
      )
      expect(results.map(({ stderr }) => stderr)).toEqual(['', '', ''])
      const leftOver = await drain(storage)
      const done = results.flatMap(({ stdout }) => JSON.parse(stdout) as string[])
      expect(new Set(done).size).toBe(done.length)
      expect(done.length + leftOver).toBe(100)
      expect(await storage.counts({})).toMatchObject({ completed: 100, pending: 0, running: 0 })
      await storage.close()
      await file.dispose()
    })
  }
})

/** A worker that finds all keys taken for a moment stops early; what it left is done here. */
async function drain(storage: KyselyStorage): Promise<number> {
  let count = 0
  for (;;) {
    const runs = await claim(storage, 10)
    if (runs.length === 0) return count
    await storage.commit(runs.map((run) => newCommit(run, { outcome: COMPLETE })))
    count += runs.length
  }
}
