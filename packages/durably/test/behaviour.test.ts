import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { SqlDurably } from '../src/index'
import { createMemoryStorage, createDurably } from '../src/index'
import { DATABASES, LIBSQL } from './databases'
import { newFile, openMigrated, openOn } from './instances'

const anything = z.unknown()

/** A job that counts how often each of its steps really ran. */
function counting(durably: SqlDurably, ran: string[], fail: { second: boolean } = { second: false }) {
  return durably.defineJob({ name: 'count', input: z.object({ n: z.number() }) }, async (ctx, { n }) => {
    const first = await ctx.run('first', () => {
      ran.push('first')
      return n + 1
    })
    return ctx.run('second', () => {
      ran.push('second')
      if (fail.second) throw new Error('no luck')
      return first * 2
    })
  })
}

describe.each(DATABASES)('on $name', ({ dialect }) => {
  it('runs, steps and results are there after closing and opening the file again', async () => {
    const file = newFile()
    const before = await openMigrated(dialect(file))
    const job = counting(before, [])
    const done = await job.trigger({ n: 20 }, { labels: { team: 'a' } })
    await before.runUntilIdle()
    const waiting = await job.trigger({ n: 1 }, { idempotencyKey: 'k', priority: 3 })
    const seen = { runs: await before.getRuns(), steps: await before.getSteps(done.id) }
    await before.close()

    const after = await openMigrated(dialect(file))
    expect({ runs: await after.getRuns(), steps: await after.getSteps(done.id) }).toEqual(seen)
    expect(seen.runs).toMatchObject([
      { id: waiting.id, status: 'pending', priority: 3 },
      { id: done.id, status: 'completed', output: 42, labels: { team: 'a' } },
    ])
    const ran: string[] = []
    counting(after, ran)
    await after.runUntilIdle()
    expect(await after.getRun(waiting.id)).toMatchObject({ status: 'completed', output: 4 })
    expect(ran).toEqual(['first', 'second'])
  })

  it('a trigger waits for a migration that is under way, wherever it was begun', async () => {
    const durably = openOn(dialect(newFile()))
    const job = counting(durably, [])
    const migrated = durably.migrate()
    const runs = await Promise.all([job.trigger({ n: 1 }), durably.trigger('count', { n: 2 })])
    await migrated
    expect(await durably.getRuns()).toHaveLength(runs.length)
  })

  it('a trigger within a transaction waits for no migration, which may wait for that transaction', async () => {
    const durably = await openMigrated(dialect(newFile()))
    const job = counting(durably, [])
    let migrated = Promise.resolve()
    await durably.transaction(async (transaction) => {
      migrated = durably.migrate()
      await job.trigger({ n: 1 }, { transaction })
    })
    await migrated
    expect(await durably.getRuns()).toHaveLength(1)
  })

  it('a run whose worker is gone goes on after its last step in another instance', async () => {
    const file = newFile()
    const first = await openMigrated(dialect(file), { workerId: 'gone' })
    const ran: string[] = []
    let hang = () => {}
    const isHanging = new Promise<void>((resolve) => {
      hang = resolve
    })
    const job = first.defineJob({ name: 'two', input: anything }, async (ctx) => {
      await ctx.run('first', () => void ran.push('first'))
      await ctx.run('second', () => {
        hang()
        return new Promise(() => {})
      })
    })
    first.start()
    const { id } = await job.trigger(null)
    await isHanging

    const second = await openMigrated(dialect(file))
    second.defineJob({ name: 'two', input: anything }, async (ctx) => {
      await ctx.run('first', () => void ran.push('first again'))
      await ctx.run('second', () => void ran.push('second'))
    })
    expect(await second.recover({ workerId: 'gone' })).toBe(1)
    await second.runUntilIdle()
    expect(await second.getRun(id)).toMatchObject({ status: 'completed', attempt: 1 })
    expect(ran).toEqual(['first', 'second'])
  })

  it('runs are found by status, job, tenant and labels, newest first, in pages', async () => {
    const durably = await openMigrated(dialect(newFile()))
    const job = counting(durably, [])
    const other = durably.defineJob({ name: 'other', input: anything }, () => {
      throw new Error('always')
    })
    const a = await job.trigger({ n: 1 }, { tenant: 'x', labels: { team: 'red', size: 's' } })
    const b = await job.trigger({ n: 2 }, { tenant: 'y', labels: { team: 'red' } })
    const c = await other.trigger(null)
    await durably.runUntilIdle()
    const d = await job.trigger({ n: 3 }, { delay: 60_000 })
    const ids = async (filter: Parameters<typeof durably.getRuns>[0]) =>
      (await durably.getRuns(filter)).map(({ id }) => id)

    expect(await ids({})).toEqual([d.id, c.id, b.id, a.id])
    expect(await ids({ status: 'failed' })).toEqual([c.id])
    expect(await ids({ status: ['pending', 'failed'] })).toEqual([d.id, c.id])
    expect(await ids({ jobName: 'count' })).toEqual([d.id, b.id, a.id])
    expect(await ids({ tenant: 'x' })).toEqual([a.id])
    expect(await ids({ labels: { team: 'red' } })).toEqual([b.id, a.id])
    expect(await ids({ labels: { team: 'red', size: 's' } })).toEqual([a.id])
    expect(await ids({ labels: { team: "x' or 1=1 --" } })).toEqual([])
    expect(await ids({ limit: 2 })).toEqual([d.id, c.id])
    expect(await ids({ limit: 2, cursor: c.id })).toEqual([b.id, a.id])
    expect((await job.getRuns({ status: 'completed' })).map(({ id }) => id)).toEqual([b.id, a.id])
    expect(await job.getRun(c.id)).toBeNull()
    expect(await durably.getRun('01ARZ3NDEKTSV4RRFFQ69G5FAV')).toBeNull()
    expect(await durably.counts()).toMatchObject({ pending: 1, completed: 2, failed: 1, running: 0 })
    expect((await durably.scoped({ tenant: 'x' }).getRuns()).map(({ id }) => id)).toEqual([a.id])
    expect(await durably.scoped({ tenant: 'x' }).getRun(b.id)).toBeNull()
  })

  it('a retry by hand keeps the steps that completed', async () => {
    const durably = await openMigrated(dialect(newFile()))
    const ran: string[] = []
    const fail = { second: true }
    const job = counting(durably, ran, fail)
    const { id } = await job.trigger({ n: 1 })
    await durably.runUntilIdle()
    expect(await job.getRun(id)).toMatchObject({ status: 'failed', error: 'no luck', attempt: 1 })
    fail.second = false
    await durably.retry(id)
    await durably.runUntilIdle()
    expect(await job.getRun(id)).toMatchObject({ status: 'completed', output: 4, attempt: 2, error: null })
    expect(ran).toEqual(['first', 'second', 'second'])
  })

  it('one idempotency key is one run', async () => {
    const durably = await openMigrated(dialect(newFile()))
    const ran: string[] = []
    const job = counting(durably, ran)
    const [first, second] = await Promise.all([
      job.trigger({ n: 1 }, { idempotencyKey: 'order-1' }),
      job.trigger({ n: 1 }, { idempotencyKey: 'order-1' }),
    ])
    expect(second.id).toBe(first.id)
    expect([first.deduplicated, second.deduplicated].sort()).toEqual([false, true])
    await durably.runUntilIdle()
    const late = await job.trigger({ n: 9 }, { idempotencyKey: 'order-1' })
    expect(late).toMatchObject({ id: first.id, deduplicated: true, status: 'completed' })
    const refused = job.trigger({ n: 9 }, { idempotencyKey: 'order-1', onConflict: 'reject' })
    await expect(refused).rejects.toMatchObject({ code: 'CONFLICT', runId: first.id })
    const elsewhere = await job.trigger({ n: 1 }, { idempotencyKey: 'order-1', tenant: 'other' })
    expect(elsewhere.deduplicated).toBe(false)
    expect(ran).toEqual(['first', 'second'])
  })

  it('a batch is created wholly, in order, or not at all', async () => {
    const durably = await openMigrated(dialect(newFile()))
    const job = counting(durably, [])
    const items = Array.from({ length: 20 }, (_, n) => ({ payload: { n }, options: { labels: { n: String(n) } } }))
    const runs = await job.batchTrigger(items)
    expect(runs.map(({ payload }) => payload)).toEqual(items.map(({ payload }) => payload))
    const bad = { payload: { n: 'x' as unknown as number } }
    await expect(job.batchTrigger([{ payload: { n: 1 } }, bad])).rejects.toMatchObject({ code: 'VALIDATION' })
    await job.trigger({ n: 0 }, { idempotencyKey: 'k' })
    const conflict = { payload: { n: 5 }, options: { idempotencyKey: 'k', onConflict: 'reject' } } as const
    await expect(job.batchTrigger([{ payload: { n: 1 } }, conflict])).rejects.toMatchObject({ code: 'CONFLICT' })
    expect(await durably.getRuns()).toHaveLength(21)
    expect(await job.batchTrigger([])).toEqual([])
  })

  it('runs of one concurrency key take turns, others do not wait for them', async () => {
    const durably = await openMigrated(dialect(newFile()), { concurrency: 6 })
    let running = 0
    const most: Record<string, number> = {}
    const order: number[] = []
    let finish = () => {}
    const free = new Promise<void>((resolve) => {
      finish = resolve
    })
    const job = durably.defineJob(
      { name: 'turns', input: z.object({ key: z.string(), n: z.number() }) },
      async (ctx, { key, n }) => {
        await ctx.run('hold', async () => {
          if (key === 'free') return finish()
          running += 1
          most[key] = Math.max(most[key] ?? 0, running)
          order.push(n)
          await free
          running -= 1
        })
      },
    )
    for (let n = 0; n < 3; n++) await job.trigger({ key: 'a', n }, { concurrencyKey: 'a' })
    await job.trigger({ key: 'free', n: 9 })
    await durably.runUntilIdle()
    expect(most).toEqual({ a: 1 })
    expect(order).toEqual([0, 1, 2])
    expect(await durably.counts()).toMatchObject({ completed: 4 })
  })

  it('cancel, delete and purge do what they say', async () => {
    const durably = await openMigrated(dialect(newFile()))
    const job = counting(durably, [])
    const cancelled = await job.trigger({ n: 1 }, { delay: 60_000 })
    expect(await durably.cancel(cancelled.id)).toMatchObject({ status: 'cancelled' })
    const done = await job.trigger({ n: 1 })
    await durably.runUntilIdle()
    await durably.deleteRun(done.id)
    expect([await durably.getRun(done.id), await durably.getSteps(done.id)]).toEqual([null, []])
    const waiting = await job.trigger({ n: 1 }, { delay: 60_000 })
    expect(await durably.purge({ olderThan: 0, status: 'completed' })).toBe(0)
    expect(await durably.purge()).toBe(1)
    expect((await durably.getRuns()).map(({ id }) => id)).toEqual([waiting.id])
  })

  it('shows its database, with the names of tables asked for', async () => {
    const file = newFile()
    const durably = await openMigrated(dialect(file))
    const { id } = await counting(durably, []).trigger({ n: 1 })
    const rows = await durably.db.selectFrom('durably_runs').select(['id', 'job_name', 'status']).execute()
    expect(rows).toEqual([{ id, job_name: 'count', status: 'pending' }])
    expect(durably.use({ name: 'nothing' }).db).toBe(durably.db)
    await durably.close()

    const plain = await openMigrated(dialect(file), { tablePrefix: '' })
    await counting(plain, []).trigger({ n: 2 })
    const { rows: own } = await sql<{ payload: string }>`select cast(payload as text) as payload from runs`.execute(
      plain.db,
    )
    expect(own).toEqual([{ payload: '{"n":2}' }])
  })
})

describe('createDurably', () => {
  it('takes a storage instead of a dialect', async () => {
    const storage = createMemoryStorage()
    const durably = createDurably({ storage, logger: null })
    expect(durably.storage).toBe(storage)
    const job = durably.defineJob({ name: 'one', input: anything }, () => 1)
    durably.start()
    expect(await job.triggerAndWait(null)).toMatchObject({ output: 1 })
    await durably.close()
  })

  it("takes the application's own Kysely instance and leaves it open", async () => {
    const owner = await openMigrated(LIBSQL.dialect(newFile()))
    const durably = createDurably({ db: owner.db, logger: null })
    expect(durably.db).toBe(owner.db)
    const job = durably.defineJob({ name: 'one', input: anything }, () => 1)
    const { id } = await job.trigger(null)
    await durably.close()
    expect(await owner.getRun(id)).toMatchObject({ status: 'pending' })
  })

  it('says so when it is given no place to work on, or two', () => {
    const create = createDurably as (options: object) => unknown
    const code = expect.objectContaining({ code: 'INVALID_OPTION' })
    expect(() => create({})).toThrow(code)
    expect(() => create({ storage: createMemoryStorage(), dialect: LIBSQL.dialect(newFile()) })).toThrow(
      'createDurably() takes a dialect, a db or a storage, and was given dialect and storage.',
    )
  })

  it('sets the durability asked for', async () => {
    const file = newFile()
    const safe = await openMigrated(LIBSQL.dialect(file))
    expect(await safe.storage.reportDurability()).toMatchObject({ synchronous: 'full', survivesPowerCut: true })
    await safe.close()
    const fast = await openMigrated(LIBSQL.dialect(file), { durability: 'fast' })
    expect(await fast.storage.reportDurability()).toMatchObject({ synchronous: 'normal', survivesPowerCut: false })
  })
})
