import { type Dialect, PostgresDialect, sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { SqlDurably } from '../../src/index'
import { postgres } from '../../src/postgres'
import { openMigrated, openOn } from '../instances'
import { newPlace, newPool, newSession } from './kit'

const nothing = z.object({})
const TIMEOUT_MS = 500
const NO_TIMEOUT_MS = 600_000

const DIALECTS: Readonly<Record<string, (url: string) => Dialect>> = {
  'postgres()': (connectionString) => postgres({ connectionString }),
  'a bare PostgresDialect': (url) => new PostgresDialect({ pool: newPool(url) }),
}

/** A body that goes on after its transaction was rolled back, from a statement that is on its way then. */
async function begin(dialect: Dialect, timeout: number, unblock: () => void) {
  const durably: SqlDurably = await openMigrated(dialect)
  await sql`create table charges (id integer primary key)`.execute(durably.db)
  const rest: Promise<unknown>[] = []
  const job = durably.defineJob({ name: 'late', input: nothing }, (ctx) =>
    ctx.transaction('charge', { timeout }, async (trx) => {
      await sql`insert into charges values (1)`.execute(trx)
      const late = async () => {
        await sql`select pg_advisory_xact_lock(4711)`.execute(trx)
        await sql`insert into charges values (2)`.execute(trx)
      }
      rest.push(late())
      // Later than the time-out, in the same queue of timers: the rollback is waiting behind the statement by then.
      if (timeout < NO_TIMEOUT_MS) setTimeout(unblock, 3 * timeout)
      await rest[0]
    }),
  )
  const { id } = await job.trigger({})
  const charges = async () => (await sql<{ readonly id: number }>`select id from charges`.execute(durably.db)).rows
  return { durably, id, rest, charges, get: () => job.getRun(id) }
}

for (const [name, dialectOf] of Object.entries(DIALECTS)) {
  describe(`what a transaction's body sends too late, on ${name}`, () => {
    it('is not sent after a time-out', async () => {
      const { url } = await newPlace()
      const blocker = await newSession(url)
      await blocker.query('select pg_advisory_lock(4711)')
      const unblock = () => void blocker.query('select pg_advisory_unlock(4711)')
      const { durably, rest, charges, get } = await begin(dialectOf(url), TIMEOUT_MS, unblock)
      await durably.runUntilIdle()
      await expect(rest[0]).rejects.toThrow(/too late|already rolled back|ended/)
      expect(await charges()).toEqual([])
      expect(await get()).toMatchObject({ status: 'failed' })
      await durably.close()
    })

    it('is not sent after the run was cancelled', async () => {
      const { url } = await newPlace()
      const blocker = await newSession(url)
      await blocker.query('select pg_advisory_lock(4711)')
      const unblock = () => void blocker.query('select pg_advisory_unlock(4711)')
      const { durably, id, rest, charges, get } = await begin(dialectOf(url), NO_TIMEOUT_MS, unblock)
      durably.start()
      await expect.poll(() => rest.length).toBe(1)
      await durably.cancel(id)
      setTimeout(unblock, 50)
      await expect(rest[0]).rejects.toThrow()
      await expect.poll(async () => (await get())?.status).toBe('cancelled')
      expect(await charges()).toEqual([])
      await durably.close()
    })
  })
}

describe('several instances on one pool', () => {
  it('share its prepared statements', async () => {
    const { url } = await newPlace()
    const pool = newPool(url, { max: 3, idleTimeoutMillis: 0 })
    let connections = 0
    pool.on('connect', () => {
      connections += 1
    })
    const trouble: string[] = []
    const both = [1, 2].map(() => openOn(postgres({ pool }), { concurrency: 2, pollingInterval: 100 }))
    const jobs = both.map((durably) => {
      durably.on('worker:error', ({ error }) => trouble.push(error))
      return durably.defineJob({ name: 'one', input: nothing }, (ctx) => ctx.run('one', () => 1))
    })
    // The second has sent others before, so it would number its statements otherwise.
    await both[1]?.counts()
    await both[1]?.getRuns()
    for (const durably of both) durably.start()
    const ended = await Promise.all(
      jobs.flatMap((job) => Array.from({ length: 10 }, async () => (await job.triggerAndWait({})).output)),
    )
    expect(ended).toEqual(ended.map(() => 1))
    for (const durably of both) await durably.close()
    expect(trouble).toEqual([])
    expect(connections).toBeLessThanOrEqual(3)
  })
})
