import { DurablyError } from '@coji/durably-core'
import { CamelCasePlugin, type Kysely, sql, type Transaction } from 'kysely'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createKyselyStorage, type KyselyStorage } from '../src'
import { leaseOf, newCommit, newRun, newStep, startRun } from './builders'
import { libsql } from '../src/drivers/libsql'
import { DATABASES, isFile, type OpenDatabase, startDatabases, tempFile, isUsual } from './databases'
import { serveHrana } from './hrana-server'
import { inLane } from '../../../test/scale'

interface AppDatabase {
  accounts: { id: string; balance: number }
}

const IN_LANE = inLane(DATABASES, isUsual)

startDatabases(IN_LANE)

for (const database of IN_LANE) {
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

    it('a mistake in a statement comes out as the driver puts it', async () => {
      const mistakes = ['select from', 'select * from nowhere', `insert into accounts values ('a', 1), ('a', 1)`]
      for (const mistake of mistakes) {
        const failing = storage.transaction.commitWith(async (trx) => {
          await sql.raw(mistake).execute(trx)
          throw new Error('It was carried out.')
        }, 5000)
        const error: unknown = await failing.catch((thrown: unknown) => thrown)
        expect(error).not.toBeInstanceOf(DurablyError)
        expect(String(error)).not.toContain('carried out')
      }
      expect(await accounts()).toEqual([])
    })

    if (isFile(database)) {
      const fill = async (trx: Transaction<AppDatabase>) => {
        await insert(trx, 'a')
        await sql`pragma max_page_count = 1`.execute(trx)
        await insert(trx, 'b'.repeat(1_000_000))
      }
      const empty = (trx: Transaction<AppDatabase>) => sql`pragma max_page_count = 1000000`.execute(trx)

      it.each([
        { what: 'throws it', body: fill },
        { what: 'throws something else', body: (trx: Transaction<AppDatabase>) => fill(trx).catch(throwOther) },
        { what: 'throws nothing', body: (trx: Transaction<AppDatabase>) => fill(trx).catch(() => {}) },
        {
          what: 'goes on writing',
          body: (trx: Transaction<AppDatabase>) => fill(trx).catch(() => insert(trx, 'c').catch(() => {})),
        },
      ])('a full disk is trouble of the database, when the body $what', async ({ body }) => {
        const run = await startRun(storage)
        const failing = storage.transaction.commitWith(async (trx) => {
          await body(trx)
          return { commit: newCommit(run, { steps: [newStep()] }), value: null }
        }, 5000)
        await expect(failing).rejects.toMatchObject({ name: 'StorageError', code: 'STORAGE_FULL' })
        expect(await accounts()).toEqual([])
        const again = storage.transaction.commitWith(async (trx) => {
          await empty(trx)
          await insert(trx, 'a')
          return { commit: newCommit(run, { steps: [newStep()] }), value: null }
        }, 5000)
        await expect(again).resolves.toMatchObject({ answer: { kept: true } })
        expect(await accounts()).toEqual(['a'])
      })

      it('a full disk comes out of a transaction of the application as the driver puts it, and takes all back', async () => {
        const failing = storage.transaction.run(async (trx) => {
          await fill(trx).catch(() => {})
          await insert(trx, 'c').catch(() => {})
        })
        const error: unknown = await failing.catch((thrown: unknown) => thrown)
        expect(String(error)).toContain('full')
        expect(error).not.toBeInstanceOf(DurablyError)
        expect(await accounts()).toEqual([])
        await storage.transaction.run(async (trx) => void (await empty(trx)))
      })
    }

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

const throwOther = () => {
  throw new Error('other')
}

describe('libsql-http', () => {
  it('a server that is cut off is trouble of the database', async () => {
    const { file, remove } = tempFile()
    const server = await serveHrana(file)
    const storage = createKyselyStorage<AppDatabase>({ dialect: libsql(server.url) })
    await storage.migrate()
    await sql`create table accounts (id text primary key, balance integer)`.execute(storage.db)
    const run = await startRun(storage)
    let restore = () => {}
    const write = (trx: Transaction<AppDatabase>) =>
      trx.insertInto('accounts').values({ id: 'a', balance: 1 }).execute()
    const failing = storage.transaction.commitWith(async (trx) => {
      await write(trx)
      restore = server.cut()
      await write(trx)
      throw new Error('It was carried out.')
    }, 5000)
    await expect(failing).rejects.toMatchObject({ name: 'StorageError', code: 'STORAGE_UNAVAILABLE' })
    restore()
    const again = storage.transaction.commitWith(async (trx) => {
      await write(trx)
      return { commit: newCommit(run, { steps: [newStep()] }), value: null }
    }, 5000)
    await expect(again).resolves.toMatchObject({ answer: { kept: true } })
    await storage.close()
    await server.close()
    remove()
  })
})
