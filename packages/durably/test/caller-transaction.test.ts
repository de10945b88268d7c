import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createDurably, createMemoryStorage, type SqlDurably } from '../src/index'
import { DATABASES, LIBSQL } from './databases'
import { newFile, openMigrated } from './instances'

const payload = z.object({ order: z.number() })

async function openShop(durably: SqlDurably) {
  await sql`create table orders (id integer primary key)`.execute(durably.db)
  const triggered: string[] = []
  durably.on('run:trigger', ({ runId }) => triggered.push(runId))
  const ship = durably.defineJob({ name: 'ship', input: payload }, (_ctx, { order }) => `shipped ${order}`)
  const orders = async () =>
    (await sql<{ id: number }>`select id from orders`.execute(durably.db)).rows.map(({ id }) => id)
  return { durably, ship, triggered, orders }
}

describe.each(DATABASES)('a transaction of the caller on $name', ({ dialect }) => {
  it('keeps a row of the application and the run that belongs to it', async () => {
    const { durably, ship, triggered, orders } = await openShop(await openMigrated(dialect(newFile())))
    const run = await durably.transaction(async (transaction) => {
      await sql`insert into orders (id) values (1)`.execute(transaction)
      const created = await ship.trigger({ order: 1 }, { transaction, labels: { kind: 'order' } })
      expect(triggered).toEqual([])
      return created
    })
    expect(triggered).toEqual([run.id])
    expect(await orders()).toEqual([1])
    await durably.runUntilIdle()
    expect(await ship.getRun(run.id)).toMatchObject({
      status: 'completed',
      output: 'shipped 1',
      labels: { kind: 'order' },
    })
  })

  it('leaves neither when it is rolled back', async () => {
    const { durably, ship, triggered, orders } = await openShop(await openMigrated(dialect(newFile())))
    let id = ''
    const failing = durably.transaction(async (transaction) => {
      await sql`insert into orders (id) values (1)`.execute(transaction)
      id = (await ship.trigger({ order: 1 }, { transaction })).id
      throw new Error('no stock')
    })
    await expect(failing).rejects.toThrow('no stock')
    expect(triggered).toEqual([])
    expect(await orders()).toEqual([])
    expect(await ship.getRun(id)).toBe(null)
    expect(await durably.counts()).toMatchObject({ pending: 0 })
  })

  it('keeps a message with its row or not at all, and tells of it when it is there', async () => {
    const { durably, orders } = await openShop(await openMigrated(dialect(newFile())))
    const published: string[] = []
    durably.on('inbox:published', ({ messageId }) => published.push(messageId))
    const order = async (id: number, isOutOfStock: boolean) => {
      let messageId = ''
      const ordering = durably.transaction(async (transaction) => {
        await sql`insert into orders (id) values (${id})`.execute(transaction)
        messageId = (await durably.publish({ type: 'ordered', payload: id, dedupeKey: 'k', transaction })).id
        expect(published).toEqual([])
        if (isOutOfStock) throw new Error('no stock')
      })
      return ordering.then(
        () => messageId,
        (error: Error) => error.message,
      )
    }
    const messages = async () => (await durably.storage.cluster?.inbox.list({}))?.map(({ id }) => id)
    expect(await order(1, true)).toBe('no stock')
    expect([published, await messages(), await orders()]).toEqual([[], [], []])
    const id = await order(2, false)
    expect([published, await messages(), await orders()]).toEqual([[id], [id], [2]])
  })

  it('can be one that the application began itself', async () => {
    const { durably, ship, triggered } = await openShop(await openMigrated(dialect(newFile())))
    await durably.db.transaction().execute(async (transaction) => {
      await sql`insert into orders (id) values (1)`.execute(transaction)
      await ship.batchTrigger([
        { payload: { order: 1 }, options: { transaction, idempotencyKey: 'one' } },
        { payload: { order: 1 }, options: { transaction, idempotencyKey: 'one' } },
      ])
    })
    expect(triggered).toEqual([])
    await durably.runUntilIdle()
    expect(await durably.counts()).toMatchObject({ completed: 1 })
  })

  it('takes a reordered payload for the same, and goes on after a refusal', async () => {
    const { durably } = await openShop(await openMigrated(dialect(newFile())))
    const job = durably.defineJob({ name: 'any', input: z.unknown() }, () => null)
    const first = await job.trigger({ a: 1, b: 2 }, { idempotencyKey: 'k' })
    const statuses = await durably.transaction(async (transaction) => {
      const options = { transaction, idempotencyKey: 'k', onConflict: 'reject' } as const
      const same = await job.trigger({ b: 2, a: 1 }, options)
      expect(same).toMatchObject({ id: first.id, deduplicated: true, payload: { a: 1, b: 2 } })
      await expect(job.trigger({ b: 3, a: 1 }, options)).rejects.toMatchObject({ runId: first.id, status: 'pending' })
      return [same.status, (await job.trigger({}, { transaction })).status]
    })
    expect(statuses).toEqual(['pending', 'pending'])
    expect(await durably.counts()).toMatchObject({ pending: 2 })
  })

  it('wakes a worker when it has been committed', async () => {
    const { durably, ship } = await openShop(await openMigrated(dialect(newFile()), { pollingInterval: 600_000 }))
    durably.start()
    const { id } = await durably.transaction((transaction) => ship.trigger({ order: 1 }, { transaction }))
    await expect(ship.wait(id)).resolves.toEqual({ id, output: 'shipped 1' })
  })
})

describe('transactions that make no sense', () => {
  it('are refused', async () => {
    const { durably, ship } = await openShop(await openMigrated(LIBSQL.dialect(newFile())))
    await expect(ship.trigger({ order: 1 }, { transaction: 'yes' })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    const mixed = durably.transaction((transaction) =>
      ship.batchTrigger([{ payload: { order: 1 }, options: { transaction } }, { payload: { order: 2 } }]),
    )
    await expect(mixed).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    expect(await durably.counts()).toMatchObject({ pending: 0 })
  })

  it('are told of on a storage that has none', async () => {
    const durably = createDurably({ storage: createMemoryStorage(), logger: null })
    await expect(durably.transaction(async () => 1)).rejects.toMatchObject({ code: 'CAPABILITY_MISSING' })
    await durably.close()
  })
})
