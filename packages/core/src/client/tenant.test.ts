import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { anything, type Bench, createBench, createGate } from '../testing/test-bench'
import { settled } from '../testing/fake-clock'

let bench: Bench

beforeEach(() => {
  bench = createBench()
})

afterEach(() => bench.close())

/** One completed run of `mine`, one of `theirs`, one without a tenant, and what tenant `mine` may touch. */
async function house() {
  const durably = bench.open()
  durably.use({ name: 'history', records: { logs: true, events: true } })
  const job = durably.defineJob({ name: 'job', input: anything }, async (ctx, payload) => {
    ctx.log.info('hi')
    await ctx.run('step', () => payload)
    if (payload === 'bad') throw new Error('no')
  })
  durably.start()
  const mine = await job.trigger('mine', { tenant: 'mine' })
  const theirs = await job.trigger('theirs', { tenant: 'theirs' })
  const nobodys = await job.trigger('nobodys')
  await settled()
  return { durably, job, mine, theirs, nobodys, scoped: durably.scoped({ tenant: 'mine' }) }
}

describe('scoped', () => {
  it('reads its own', async () => {
    const { scoped, mine } = await house()
    expect(await scoped.getRun(mine.id)).toMatchObject({ id: mine.id, tenant: 'mine' })
    expect((await scoped.getRuns()).map(({ id }) => id)).toEqual([mine.id])
    expect(await scoped.getSteps(mine.id)).toHaveLength(1)
    expect(await scoped.getLogs(mine.id)).toHaveLength(1)
    expect((await scoped.getEvents(mine.id)).length).toBeGreaterThan(3)
    expect(await scoped.counts()).toMatchObject({ completed: 1 })
    expect(await scoped.explain(mine.id)).toContain('completed')
  })

  it('sees nothing of others: it is as if it were not there', async () => {
    const { scoped, theirs, nobodys } = await house()
    for (const { id } of [theirs, nobodys]) {
      expect(await scoped.getRun(id)).toBeNull()
      expect(await scoped.getSteps(id)).toEqual([])
      expect(await scoped.getLogs(id)).toEqual([])
      expect(await scoped.getEvents(id)).toEqual([])
      expect(await scoped.explain(id)).toBe(`There is no run ${id}. It may have been deleted or purged.`)
    }
  })

  it('cannot be talked out of it by a filter', async () => {
    const { scoped, mine } = await house()
    expect((await scoped.getRuns({ tenant: 'theirs' })).map(({ id }) => id)).not.toContain('theirs')
    expect((await scoped.getRuns({ tenant: 'theirs' })).every(({ tenant }) => tenant === 'mine')).toBe(true)
    expect((await scoped.getRuns({ tenant: undefined })).map(({ id }) => id)).toEqual([mine.id])
    expect(await scoped.counts({ tenant: 'theirs' })).toMatchObject({ completed: 1 })
    expect((await scoped.getRuns({ cursor: mine.id })).length).toBe(0)
  })

  it('cannot use a run of others as a cursor: it is as unknown as any', async () => {
    const { scoped, theirs } = await house()
    const errors = []
    for (const cursor of [theirs.id, '01ARZ3NDEKTSV4RRFFQ69G5FAV']) {
      const error = await scoped.getRuns({ cursor }).catch((thrown: unknown) => thrown)
      errors.push(String(error).replaceAll(cursor, 'CURSOR'))
    }
    expect(errors[0]).toContain('InvalidOptionError')
    expect(errors[0]).toBe(errors[1])
  })

  it('sees its own only, also after the place of a run of others', async () => {
    const { scoped, durably, mine, theirs, nobodys } = await house()
    expect((await durably.getRuns({ cursor: nobodys })).map(({ id }) => id)).toEqual([theirs.id, mine.id])
    expect((await scoped.getRuns({ cursor: nobodys })).map(({ id }) => id)).toEqual([mine.id])
  })

  it('can change nothing of others', async () => {
    const { durably, job, scoped } = await house()
    const failed = await job.trigger('bad', { tenant: 'theirs' })
    const waiting = await job.trigger('x', { tenant: 'theirs', delay: 100_000 })
    await settled()
    await expect(scoped.retry(failed.id)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(scoped.cancel(waiting.id)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(scoped.deleteRun(failed.id)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    expect(await scoped.purge({ tenant: 'theirs' })).toBe(1)
    expect(await durably.counts({ tenant: 'theirs' })).toMatchObject({ completed: 1, failed: 1, pending: 1 })
    expect(await durably.counts({ tenant: 'mine' })).toMatchObject({ completed: 0 })
  })

  it('can do what it likes with its own', async () => {
    const { job, scoped } = await house()
    const failed = await job.trigger('bad', { tenant: 'mine' })
    const waiting = await job.trigger('x', { tenant: 'mine', delay: 100_000 })
    await settled()
    expect(await scoped.retry(failed.id)).toMatchObject({ status: 'pending' })
    expect(await scoped.cancel(waiting.id)).toMatchObject({ status: 'cancelled' })
    await scoped.deleteRun(waiting.id)
    expect(await scoped.getRun(waiting.id)).toBeNull()
  })

  it('triggers for its tenant, whatever the options say', async () => {
    const { durably, scoped } = await house()
    const job = { name: 'job' } as const
    const run = await scoped.trigger(job, 'new', { tenant: 'theirs' } as object)
    expect(run).toMatchObject({ tenant: 'mine', payload: 'new', deduplicated: false })
    await settled()
    expect(await durably.getRun(run.id)).toMatchObject({ status: 'completed' })
    await expect(scoped.trigger({ name: 'nothing' }, {})).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  it('does not find the idempotency keys of others', async () => {
    const { job, scoped } = await house()
    const theirs = await job.trigger('x', { tenant: 'theirs', idempotencyKey: 'k' })
    const run = await scoped.trigger({ name: 'job' }, 'x', { idempotencyKey: 'k' })
    expect(run.deduplicated).toBe(false)
    expect(run.id).not.toBe(theirs.id)
  })

  it('does not learn from explain who has the concurrency key of another tenant', async () => {
    const gate = createGate()
    const durably = bench.open({ concurrency: 1 })
    const job = durably.defineJob({ name: 'hold', input: anything }, () => gate.opened)
    durably.start()
    const theirs = await job.trigger({}, { tenant: 'theirs', concurrencyKey: 'k' })
    await settled()
    const mine = await job.trigger({}, { tenant: 'mine', concurrencyKey: 'k' })
    expect(await durably.scoped({ tenant: 'mine' }).explain(mine.id)).not.toContain(theirs.id)
    gate.open()
  })

  it('is never everything by mistake', () => {
    const durably = bench.open()
    for (const tenant of [undefined, null, 5]) {
      expect(() => durably.scoped({ tenant: tenant as unknown as string })).toThrow(
        expect.objectContaining({ code: 'INVALID_OPTION' }),
      )
    }
  })

  it('to the empty tenant is to runs without a tenant', async () => {
    const { durably, nobodys } = await house()
    expect((await durably.scoped({ tenant: '' }).getRuns()).map(({ id }) => id)).toEqual([nobodys.id])
  })
})
