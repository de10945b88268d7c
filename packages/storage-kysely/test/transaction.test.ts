import { CamelCasePlugin, type Kysely, sql, type Transaction } from 'kysely'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createKyselyStorage, type KyselyStorage } from '../src'
import { leaseOf, newCommit, newRun, newStep, startRun } from './builders'
import { DATABASES, startDatabases, type OpenDatabase } from './databases'

interface AppDatabase {
  accounts: { id: string; balance: number }
}

startDatabases()

for (const database of DATABASES) {
  describe(database.name, () => {
    let opened: OpenDatabase
    let storage: KyselyStorage<AppDatabase>

    beforeEach(async () => {
      opened = await database.open()
      storage = createKyselyStorage<AppDatabase>({ dialect: opened.connect() })
      await storage.migrate()
      await sql`create table accounts (id text primary key, balance integer)`.execute(storage.db)
    })

    afterEach(async () => {
      await storage.close()
      await opened.dispose()
    })

    const insert = (trx: Kysely<AppDatabase>, id: string) =>
      trx.insertInto('accounts').values({ id, balance: 1 }).execute()
    const accounts = async () => (await storage.db.selectFrom('accounts').select('id').execute()).map(({ id }) => id)

    it('rows of the application and the step are there together', async () => {
      const run = await startRun(storage)
      const body = async (trx: Transaction<AppDatabase>) => {
        await insert(trx, 'a')
        return { commit: newCommit(run, { steps: [newStep({ kind: 'transaction' })] }), value: 7 }
      }
      expect(await storage.transaction.commitWith(body, 5000)).toMatchObject({ answer: { kept: true }, value: 7 })
      expect(await accounts()).toEqual(['a'])
      expect(await storage.getSteps(run.id)).toHaveLength(1)
    })

    it('a lost lease takes the rows back', async () => {
      const run = await startRun(storage)
      const lost = newCommit(run, { lease: { ...leaseOf(run), token: 'other' }, steps: [newStep()] })
      const body = async (trx: Transaction<AppDatabase>) => {
        await insert(trx, 'a')
        return { commit: lost, value: 7 }
      }
      expect(await storage.transaction.commitWith(body, 5000)).toEqual({ answer: { kept: false }, value: undefined })
      expect(await accounts()).toEqual([])
    })

    it('an error of the body comes out as it is', async () => {
      const error = new Error('mine')
      const failing = storage.transaction.commitWith(async (trx) => {
        await insert(trx, 'a')
        throw error
      }, 5000)
      await expect(failing).rejects.toBe(error)
      expect(await accounts()).toEqual([])
    })

    it('a body that takes too long is rolled back, and what it does later reaches nothing', async () => {
      const run = await startRun(storage)
      let goOn = () => {}
      const stuck = new Promise<void>((resolve) => (goOn = resolve))
      let late: Promise<unknown> = Promise.resolve()
      const slow = storage.transaction.commitWith(async (trx) => {
        await insert(trx, 'a')
        await stuck
        late = insert(trx, 'b')
        await late
        return { commit: newCommit(run), value: null }
      }, 50)
      await expect(slow).rejects.toMatchObject({ code: 'TRANSACTION_TIMEOUT' })
      goOn()
      await stuck
      await expect(Promise.resolve().then(() => late)).rejects.toThrow()
      expect(await accounts()).toEqual([])
    })

    it('a run enqueued in a transaction is there when it commits, and not otherwise', async () => {
      await storage.transaction.run(async (trx) => {
        await insert(trx, 'a')
        await storage.transaction.enqueue(trx, [newRun({ id: 'kept', labels: { a: 'b' } })])
      })
      const failing = storage.transaction.run(async (trx) => {
        await storage.transaction.enqueue(trx, [newRun({ id: 'gone' })])
        throw new Error('no')
      })
      await expect(failing).rejects.toThrow('no')
      expect(await storage.getRun('kept')).toMatchObject({ labels: { a: 'b' } })
      expect(await storage.getRun('gone')).toBe(null)
    })

    it('a refused list leaves nothing in a transaction that goes on', async () => {
      await storage.enqueue([newRun({ idempotencyKey: 'key' })])
      await storage.transaction.run(async (trx) => {
        await insert(trx, 'a')
        const refused = newRun({ idempotencyKey: 'key', payload: '"other"', onConflict: 'reject' })
        const enqueue = storage.transaction.enqueue(trx, [newRun({ id: 'first' }), refused])
        await expect(enqueue).rejects.toMatchObject({ code: 'CONFLICT' })
      })
      expect(await storage.getRun('first')).toBe(null)
      expect(await accounts()).toEqual(['a'])
    })

    it('lists take turns in a transaction, whatever the application makes of it', async () => {
      await storage.enqueue([newRun({ idempotencyKey: 'key' })])
      await storage.transaction.run(async (trx) => {
        const refused = newRun({ idempotencyKey: 'key', payload: '"other"', onConflict: 'reject' })
        const views = [trx, trx.withPlugin(new CamelCasePlugin()), trx]
        const lists = [[refused], [newRun({ id: 'second' })], [newRun({ id: 'third' })]]
        const enqueue = (list: (typeof lists)[number], index: number) =>
          storage.transaction.enqueue(views[index] ?? trx, list)
        const answers = await Promise.allSettled(lists.map(enqueue))
        expect(answers.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled'])
      })
      expect(await storage.getRun('second')).toMatchObject({ status: 'pending' })
      expect(await storage.getRun('third')).toMatchObject({ status: 'pending' })
    })

    it('works on a Kysely instance of the application, its plugins and all', async () => {
      const own = storage.db.withPlugin(new CamelCasePlugin())
      const shared = createKyselyStorage<AppDatabase>({ db: own })
      await shared.migrate()
      const run = await startRun(shared)
      await shared.transaction.run(async (trx) => {
        await shared.transaction.enqueue(trx, [newRun({ id: 'in-trx' })])
      })
      expect(await shared.getRun('in-trx')).toMatchObject({ jobName: 'job' })
      expect((await shared.commit([newCommit(run, { steps: [newStep()] })]))[0]).toMatchObject({ kept: true })
      await shared.close()
      expect(await storage.getSteps(run.id)).toHaveLength(1)
    })
  })
}
