import { MysqlAdapter, MysqlDialect, sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createDurably, type SqlDurably } from '../../src/index'
import { postgres } from '../../src/postgres'
import { openOn } from '../instances'
import { newPlace, newPool, WITHOUT_POLLING } from './kit'

const nothing = z.object({})

function defineTwoSteps(durably: SqlDurably) {
  return durably.defineJob({ name: 'two', input: nothing }, async (ctx) => {
    const one = await ctx.run('one', () => 1)
    return ctx.run('two', () => one + 1)
  })
}

const SESSIONS = `select pid, application_name as name from pg_stat_activity
  where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`

const KILL_ALL = `select pg_terminate_backend(pid) from pg_stat_activity
  where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`

describe('postgres({ pool })', () => {
  it('works through the pool of the application, which stays open', async () => {
    const place = await newPlace()
    const pool = newPool(place.url, { max: 5 })
    const durably = openOn(postgres({ pool }), WITHOUT_POLLING)
    durably.start()
    expect(await defineTwoSteps(durably).triggerAndWait({})).toMatchObject({ output: 2 })
    await durably.close()
    await durably.close()
    expect((await pool.query<{ readonly n: number }>('select 1 as n')).rows).toEqual([{ n: 1 }])
    expect(pool.ended).toBe(false)
    const errors = pool.listenerCount('error')
    await openOn(postgres({ pool })).close()
    expect(pool.listenerCount('connect')).toBe(0)
    expect(pool.listenerCount('error')).toBe(errors)
  })

  it('survives sessions that are killed: idle ones, those in use and the one that listens', async () => {
    const place = await newPlace()
    const durably = openOn(postgres({ pool: newPool(place.url, { max: 5 }) }), { ...WITHOUT_POLLING, concurrency: 3 })
    const failed: string[] = []
    const completed: string[] = []
    durably.on('run:fail', ({ error }) => failed.push(error))
    durably.on('run:complete', ({ runId }) => completed.push(runId))
    const job = durably.defineJob({ name: 'many', input: nothing }, async (ctx) => {
      for (let n = 0; n < 5; n++) {
        await ctx.run(`step ${n}`, async () => {
          if (n % 2 === 0) await place.query(KILL_ALL)
          return n
        })
      }
    })
    durably.start()
    await job.batchTrigger([{ payload: {} }, { payload: {} }, { payload: {} }])
    // Not by reading: the session of a read is killed as well, and the caller is told.
    await expect.poll(() => completed.length + failed.length).toBe(3)
    expect(failed).toEqual([])
    // Its session may be one that was killed and is not told yet.
    await expect.poll(() => durably.counts().catch(() => null)).toMatchObject({ completed: 3 })
  })
})

describe('postgres({ connectionString })', () => {
  it('closes what it opened', async () => {
    const place = await newPlace()
    await expect.poll(() => place.query(SESSIONS)).toEqual([])
    const durably = place.open({ concurrency: 2 })
    const job = defineTwoSteps(durably)
    durably.start()
    await Promise.all([job.triggerAndWait({}), job.triggerAndWait({})])
    await durably.transaction(async (trx) => void (await sql`select 1`.execute(trx)))
    const open = await place.query<{ readonly name: string }>(SESSIONS)
    expect(open.length).toBeGreaterThan(1)
    expect(new Set(open.map(({ name }) => name))).toEqual(new Set(['durably']))
    await durably.close()
    await expect.poll(() => place.query(SESSIONS)).toEqual([])
  })

  it.each([0, 2, 2.5, Number.NaN])('does not take max: %d', async (max) => {
    const place = await newPlace()
    expect(() => postgres({ connectionString: place.url, max })).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', message: expect.stringContaining('at least 3') }),
    )
  })

  it('does not take both, or neither', async () => {
    const { url } = await newPlace()
    const make = postgres as (config: object) => unknown
    for (const config of [{}, { connectionString: '' }, { connectionString: url, pool: newPool(url) }]) {
      expect(() => make(config)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }))
    }
  })

  it.each([true, false])('prepares statements, or not (%s)', async (prepare) => {
    const place = await newPlace()
    const pool = newPool(place.url, { max: 3 })
    const durably = openOn(postgres({ pool, prepare }), WITHOUT_POLLING)
    const job = defineTwoSteps(durably)
    for (let n = 0; n < 3; n++) await job.trigger({})
    await durably.runUntilIdle()
    expect(await durably.counts()).toMatchObject({ completed: 3 })
    const clients = await Promise.all(Array.from({ length: 3 }, () => pool.connect()))
    const counted = await Promise.all(
      clients.map(async (client) => (await client.query('select name from pg_prepared_statements')).rowCount ?? 0),
    )
    for (const client of clients) client.release()
    const most = Math.max(...counted)
    if (prepare) expect(most).toBeGreaterThan(0)
    else expect(most).toBe(0)
  })
})

describe('transactions that take all the connections they can get', () => {
  it('do not keep leases from being renewed, nor others from working', async () => {
    const place = await newPlace()
    const max = 4
    const durably = place.open({ max, concurrency: 3, heartbeatInterval: 100, staleThreshold: 60_000 })
    const lost: string[] = []
    durably.on('worker:lease-lost', ({ runId }) => lost.push(runId))
    let goOn = () => {}
    const gate = new Promise<void>((resolve) => {
      goOn = resolve
    })
    let open = 0
    const job = durably.defineJob({ name: 'long', input: nothing }, (ctx) =>
      ctx.transaction('hold', { timeout: 600_000 }, async (trx) => {
        await sql`select 1`.execute(trx)
        open += 1
        await gate
      }),
    )
    const ids = (await job.batchTrigger([{ payload: {} }, { payload: {} }, { payload: {} }])).map(({ id }) => id)
    const outside = Array.from({ length: 3 }, () =>
      durably.transaction(async (trx) => {
        await sql`select 1`.execute(trx)
        open += 1
        await gate
      }),
    )
    const settled = Promise.allSettled(outside)
    durably.start()
    await expect.poll(() => open).toBe(max - 2)
    const leaseOf = async () => {
      const rows = await place.query<{ readonly until: string }>(
        "select extract(epoch from min(lease_until)) as until from durably_runs where status = 'running'",
      )
      return Number(rows[0]?.until)
    }
    await expect.poll(async () => (await durably.counts()).running).toBe(3)
    const before = await leaseOf()
    // Only renewals move it, and all connections that transactions can get are taken.
    await expect.poll(leaseOf).toBeGreaterThan(before + 1)
    expect(open).toBe(max - 2)
    goOn()
    await settled
    for (const id of ids) await job.wait(id)
    expect(lost).toEqual([])
    expect(await durably.getRuns()).toMatchObject(Array.from(ids, () => ({ status: 'completed', crashCount: 0 })))
  })
})

describe('a dialect of a database that durably does not know', () => {
  it('is refused at once', () => {
    const dialect = new MysqlDialect({ pool: async () => Promise.reject(new Error('nobody should connect')) })
    expect(dialect.createAdapter()).toBeInstanceOf(MysqlAdapter)
    expect(() => createDurably({ dialect, logger: null })).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', message: expect.stringContaining('SQLite and Postgres') }),
    )
  })
})
