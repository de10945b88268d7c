import { PrismaPg } from '@prisma/adapter-pg'
import { sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import postgresJs from 'postgres'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { PATIENCE_MS } from '../../../../test/pace'
import { ConflictError, type SqlTransaction } from '../../src/index'
import { betterSqlite3 } from '../../src/better-sqlite3'
import { openMigrated } from '../instances'
import { newPlace, newPool, newSession } from './kit'
import { prismaClient } from './prisma-client'

/** What an application does in a transaction: a statement of its own, and with durably what it is given. */
type Body = (own: (text: string) => PromiseLike<unknown>, transaction: SqlTransaction) => Promise<unknown>
type Begin = (body: Body) => Promise<unknown>

async function onPg(url: string): Promise<Begin> {
  const client = await newSession(url)
  return async (body) => {
    await client.query('begin')
    try {
      await body((text) => client.query(text), client)
      await client.query('commit')
    } catch (error) {
      await client.query('rollback')
      throw error
    }
  }
}

async function onPostgresJs(url: string): Promise<Begin> {
  const client = postgresJs(url, { max: 2, onnotice: () => {} })
  onTestFinished(() => client.end())
  return (body) =>
    client.begin((tx) => body((text) => tx.unsafe(text), { query: (text, params) => tx.unsafe(text, params) }))
}

async function onDrizzle(url: string): Promise<Begin> {
  const db = drizzle(newPool(url))
  return (body) =>
    db.transaction((tx) =>
      body((text) => tx.execute(text), {
        query(text, params) {
          const texts = text.split(/\$\d+/).map((part) => sql.raw(part))
          return tx.execute(
            sql.join(texts.flatMap((part, n) => (n < params.length ? [part, sql`${params[n]}`] : [part]))),
          )
        },
      }),
    )
}

async function onPrisma(url: string): Promise<Begin> {
  const prisma = prismaClient(new PrismaPg({ connectionString: url }))
  onTestFinished(() => prisma.$disconnect())
  return (body) =>
    prisma.$transaction(
      (tx) =>
        body((text) => tx.$queryRawUnsafe(text), { query: (text, params) => tx.$queryRawUnsafe(text, ...params) }),
      // Its own are a few seconds.
      { maxWait: PATIENCE_MS, timeout: PATIENCE_MS },
    )
}

async function openShop() {
  const place = await newPlace()
  await place.query('create table orders (id integer primary key)')
  const durably = place.open()
  const mail = durably.defineJob({ name: 'mail', input: z.object({ to: z.string() }) }, (_ctx, { to }) => `to ${to}`)
  const orders = () => place.query('select id from orders order by id')
  return { place, durably, mail, orders }
}

describe.each([
  ['pg', onPg],
  ['postgres.js', onPostgresJs],
  ['Drizzle', onDrizzle],
  ['Prisma', onPrisma],
])('a transaction of %s', (_name, open) => {
  it('creates a run with the rows of the application, and wakes who waits', async () => {
    const { place, durably, mail, orders } = await openShop()
    const begin = await open(place.url)
    const ended = new Promise<string>((resolve) => durably.on('run:complete', ({ runId }) => resolve(runId)))
    durably.start()
    await expect.poll(() => place.listeners()).toHaveLength(1)
    await begin(async (own, transaction) => {
      await own('insert into orders values (1)')
      await mail.trigger({ to: 'ann' }, { transaction, labels: { order: '1' }, idempotencyKey: 'order 1' })
      await own('insert into orders values (2)')
    })
    expect(await mail.getRun(await ended)).toMatchObject({ output: 'to ann', labels: { order: '1' } })
    expect(await orders()).toEqual([{ id: 1 }, { id: 2 }])
  })

  it('leaves nothing when it is rolled back', async () => {
    const { place, durably, mail, orders } = await openShop()
    const begin = await open(place.url)
    const failed = begin(async (own, transaction) => {
      await own('insert into orders values (1)')
      await mail.batchTrigger([
        { payload: { to: 'ann' }, options: { transaction } },
        { payload: { to: 'bob' }, options: { transaction } },
      ])
      throw new Error('out of stock')
    })
    await expect(failed).rejects.toThrow('out of stock')
    expect([await orders(), await durably.getRuns({})]).toEqual([[], []])
  })

  it('goes on after a run that was refused', async () => {
    const { place, durably, mail, orders } = await openShop()
    await mail.trigger({ to: 'ann' }, { idempotencyKey: 'k' })
    const begin = await open(place.url)
    await begin(async (own, transaction) => {
      const again = mail.trigger({ to: 'bob' }, { transaction, idempotencyKey: 'k', onConflict: 'reject' })
      await expect(again).rejects.toBeInstanceOf(ConflictError)
      const same = await mail.trigger({ to: 'ann' }, { transaction, idempotencyKey: 'k' })
      expect(same.deduplicated).toBe(true)
      await own('insert into orders values (1)')
    })
    expect([await orders(), (await durably.getRuns({})).length]).toEqual([[{ id: 1 }], 1])
  })
})

describe('triggers that are not awaited one after the other', () => {
  it('lose none that was acknowledged', async () => {
    const { place, durably, mail } = await openShop()
    await mail.trigger({ to: 'ann' }, { idempotencyKey: 'k' })
    const client = await newSession(place.url)
    await client.query('begin')
    const triggered = (to: string, idempotencyKey: string) =>
      mail.trigger(
        { to },
        {
          transaction: { query: (text: string, params: unknown[]) => client.query(text, params) },
          idempotencyKey,
          onConflict: 'reject',
        },
      )
    const outcomes = await Promise.allSettled([triggered('bob', 'bob'), triggered('eve', 'k'), triggered('eve', 'k')])
    const committed = await client.query('commit')
    const created = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value.id] : []))
    const known = (await durably.getRuns({})).map(({ id }) => id)
    if (committed.command === 'COMMIT') expect(known).toEqual(expect.arrayContaining(created))
    else expect(known).toHaveLength(1)
  })

  it('of one object are done in turn', async () => {
    const { place, durably, mail } = await openShop()
    await mail.trigger({ to: 'ann' }, { idempotencyKey: 'k' })
    const client = await newSession(place.url)
    const transaction = { query: (text: string, params: unknown[]) => client.query(text, params) }
    await client.query('begin')
    const outcomes = await Promise.allSettled([
      mail.trigger({ to: 'bob' }, { transaction }),
      mail.trigger({ to: 'eve' }, { transaction, idempotencyKey: 'k', onConflict: 'reject' }),
      mail.trigger({ to: 'joe' }, { transaction }),
    ])
    await client.query('commit')
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect((await durably.getRuns({})).length).toBe(3)
  })
})

describe('what is no transaction is refused', () => {
  it('a client without one, and a pool', async () => {
    const { place, durably, mail } = await openShop()
    for (const transaction of [await newSession(place.url), newPool(place.url)]) {
      const refused = expect(mail.trigger({ to: 'ann' }, { transaction })).rejects
      await refused.toMatchObject({
        code: 'INVALID_OPTION',
        message: expect.stringContaining('send begin on one client first'),
      })
    }
    expect(await durably.getRuns({})).toEqual([])
  })

  it('an instance of Kysely, and what has no query()', async () => {
    const { durably, mail } = await openShop()
    const triggered = (transaction: unknown) => expect(mail.trigger({ to: 'ann' }, { transaction })).rejects
    await triggered(durably.db).toThrow('no transaction is open: begin one, and give the trx')
    await triggered({ execute: () => {} }).toThrow('nor has it a function query(sql, params)')
    await triggered({ query: async () => ({ count: 0 }) }).toThrow('must answer the rows')
    await triggered({ query: () => undefined }).toThrow('must answer the rows')
  })

  it('on SQLite, where it would be a transaction on another connection', async () => {
    const durably = await openMigrated(betterSqlite3(':memory:'))
    const job = durably.defineJob({ name: 'mail', input: z.object({}) }, () => {})
    await expect(job.trigger({}, { transaction: { query: () => [] } })).rejects.toThrow("must be Kysely's trx")
  })
})
