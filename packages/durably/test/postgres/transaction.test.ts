import { sql, type Transaction } from 'kysely'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { DurablyDatabase, SqlDurably, SqlJobContext } from '../../src/index'
import { postgres } from '../../src/postgres'
import { openOn } from '../instances'
import { newPlace, newPool } from './kit'

type Trx = Transaction<DurablyDatabase>

const charge = (trx: Trx, id: number) => sql`insert into charges (id) values (${id})`.execute(trx)

/** A table of the application with a row that is in the way, and another whose rules are checked at the end. */
async function openShop() {
  const place = await newPlace()
  await place.query('create table charges (id integer primary key)')
  await place.query('insert into charges values (0)')
  await place.query('create table refunds (charge integer references charges (id) deferrable initially deferred)')
  const charges = async () => {
    const rows = await place.query<{ readonly id: number }>('select id from charges where id > 0 order by id')
    return rows.map(({ id }) => id)
  }
  const perform = async (durably: SqlDurably, execute: (ctx: SqlJobContext<DurablyDatabase>) => unknown) => {
    const job = durably.defineJob({ name: 'job', input: z.object({}) }, execute)
    const { id } = await job.trigger({})
    await durably.runUntilIdle()
    return { run: await job.getRun(id), steps: await durably.getSteps(id) }
  }
  return { place, charges, perform }
}

describe('ctx.transaction on Postgres', () => {
  it('fails as a step when a row is in the way, and the job goes on', async () => {
    const { place, charges, perform } = await openShop()
    const { run, steps } = await perform(place.open(), async (ctx) => {
      const refused = ctx.transaction('taken', async (trx) => {
        await charge(trx, 1)
        await charge(trx, 0)
      })
      const code = await refused.catch((error: unknown) => (error as { code?: unknown }).code)
      await ctx.transaction('free', async (trx) => void (await charge(trx, 2)))
      return code
    })
    expect(run).toMatchObject({ status: 'completed', output: '23505' })
    expect(steps).toMatchObject([
      { name: 'taken', status: 'failed' },
      { name: 'free', status: 'completed' },
    ])
    expect(await charges()).toEqual([2])
  })

  it('fails as a step when its body hides an error that has spoilt the transaction', async () => {
    const { place, charges, perform } = await openShop()
    let bodies = 0
    const { run, steps } = await perform(place.open(), (ctx) =>
      ctx.transaction('hides', async (trx) => {
        bodies += 1
        await charge(trx, bodies)
        await charge(trx, 0).catch(() => {})
      }),
    )
    expect(run).toMatchObject({ status: 'failed', error: expect.stringContaining('transaction is aborted') })
    expect([bodies, steps.length, await charges()]).toEqual([1, 1, []])
  })

  it('fails as a step when a rule that is checked at the end does not hold', async () => {
    const { place, charges, perform } = await openShop()
    const { run, steps } = await perform(place.open(), (ctx) =>
      ctx.transaction('late', async (trx) => {
        await charge(trx, 1)
        await sql`insert into refunds values (7)`.execute(trx)
      }),
    )
    expect(run).toMatchObject({ status: 'failed', error: expect.stringContaining('refunds') })
    expect(steps).toMatchObject([{ name: 'late', status: 'failed' }])
    expect(await charges()).toEqual([])
  })

  it('is done again when its session is killed, and is there once', async () => {
    const { place, charges, perform } = await openShop()
    const bodies: number[] = []
    const { run, steps } = await perform(place.open(), (ctx) =>
      ctx.transaction('charge', async (trx) => {
        bodies.push(bodies.length + 1)
        await charge(trx, bodies.length)
        const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(trx)
        if (bodies.length < 3) await place.query('select pg_terminate_backend($1)', [rows[0]?.pid])
        await sql`select 1`.execute(trx)
        return bodies.length
      }),
    )
    expect(run).toMatchObject({ status: 'completed', output: 3 })
    expect(steps).toMatchObject([{ status: 'completed' }])
    expect(await charges()).toEqual([3])
  })

  it.each([
    ['a deadlock', '40P01'],
    ['another transaction that was first', '40001'],
  ])('is done again when it was the victim of %s', async (_what, code) => {
    const { place, charges, perform } = await openShop()
    let bodies = 0
    const { run, steps } = await perform(place.open(), (ctx) =>
      ctx.transaction('charge', async (trx) => {
        bodies += 1
        await charge(trx, bodies)
        // As the server says it; who of two is the victim is a matter of milliseconds.
        if (bodies === 1) await sql.raw(`do $$ begin raise sqlstate '${code}'; end $$`).execute(trx)
        return bodies
      }),
    )
    expect(run).toMatchObject({ status: 'completed', output: 2 })
    expect(steps).toMatchObject([{ status: 'completed' }])
    expect(await charges()).toEqual([2])
  })

  it('is left open for as long as was asked for', async () => {
    const { place, charges, perform } = await openShop()
    const pool = newPool(place.url)
    pool.on('connect', (client) => void client.query("set idle_in_transaction_session_timeout = '100ms'"))
    const durably = openOn(postgres({ pool }))
    let bodies = 0
    const { run } = await perform(durably, (ctx) =>
      ctx.transaction('slow', { timeout: 600_000 }, async (trx) => {
        bodies += 1
        await charge(trx, bodies)
        if (bodies === 1) await new Promise((resolve) => setTimeout(resolve, 300))
        await charge(trx, 10)
      }),
    )
    expect(run).toMatchObject({ status: 'completed' })
    expect([bodies, await charges()]).toEqual([1, [1, 10]])
  })

  it('can be left open for as long as timers and the server can count', async () => {
    const { place, charges, perform } = await openShop()
    const { run } = await perform(place.open(), (ctx) =>
      ctx.transaction('charge', { timeout: 2 ** 31 - 1 }, async (trx) => {
        await charge(trx, 1)
        await new Promise((resolve) => setTimeout(resolve, 5))
        await charge(trx, 2)
      }),
    )
    expect(run).toMatchObject({ status: 'completed' })
    expect(await charges()).toEqual([1, 2])
  })

  it('leaves nothing of a worker that lost the run meanwhile', async () => {
    const { place, charges } = await openShop()
    const [loser, winner] = [place.open({ workerId: 'loser' }), place.open()]
    const begun = { by: [] as number[] }
    let isTaken = () => {}
    const taken = new Promise<void>((resolve) => {
      isTaken = resolve
    })
    const define = (durably: SqlDurably, id: number) =>
      durably.defineJob({ name: 'job', input: z.object({}) }, (ctx) =>
        ctx.transaction('charge', async (trx) => {
          begun.by.push(id)
          await charge(trx, id)
          if (id === 1) await taken
          return id
        }),
      )
    define(winner, 2)
    const lost: string[] = []
    loser.on('worker:lease-lost', ({ runId }) => lost.push(runId))
    const { id } = await define(loser, 1).trigger({})
    const running = loser.runUntilIdle()
    await expect.poll(() => begun.by).toEqual([1])
    await winner.recover({ workerId: 'loser' })
    await winner.runUntilIdle()
    isTaken()
    await running
    expect(begun.by).toEqual([1, 2])
    expect(lost).toEqual([id])
    expect(await charges()).toEqual([2])
    expect(await winner.getRun(id)).toMatchObject({ status: 'completed', output: 2 })
  })
})

describe('trigger() in a transaction of the caller on Postgres', () => {
  it('that is refused leaves the rest of the transaction in order', async () => {
    const { place, charges } = await openShop()
    const durably = place.open()
    const job = durably.defineJob({ name: 'mail', input: z.object({ to: z.string() }) }, () => 'sent')
    const options = { idempotencyKey: 'one', onConflict: 'reject' } as const
    await job.trigger({ to: 'me' }, options)
    await durably.transaction(async (transaction) => {
      await charge(transaction, 1)
      await expect(job.trigger({ to: 'you' }, { ...options, transaction })).rejects.toMatchObject({ code: 'CONFLICT' })
      await charge(transaction, 2)
    })
    expect(await charges()).toEqual([1, 2])
    expect(await durably.getRuns()).toHaveLength(1)
  })

  it('waits for one of the same key in another transaction, and takes the place of one that is rolled back', async () => {
    const { place } = await openShop()
    const [one, other] = [place.open(), place.open()]
    const jobs = [one, other].map((durably) =>
      durably.defineJob({ name: 'mail', input: z.object({ to: z.string() }) }, () => 'sent'),
    )
    const [first, second] = jobs
    if (first === undefined || second === undefined) throw new Error('There are two.')
    let answer: Promise<{ readonly deduplicated: boolean }> | undefined
    const rolledBack = one.transaction(async (transaction) => {
      await first.trigger({ to: 'me' }, { transaction, idempotencyKey: 'one' })
      answer = second.trigger({ to: 'me' }, { idempotencyKey: 'one' })
      const waits = "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
      await expect.poll(() => place.query(waits)).toHaveLength(1)
      throw new Error('never mind')
    })
    await expect(rolledBack).rejects.toThrow('never mind')
    expect(await answer).toMatchObject({ deduplicated: false })
    expect(await one.getRuns()).toHaveLength(1)
  })
})
