import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type ConflictError, createDurably, InvalidOptionError, NotFoundError } from '../index'
import { createMemoryStorage } from '../memory'

function office() {
  const durably = createDurably({ storage: createMemoryStorage(), logger: null })
  durably.use({ name: 'history', records: { events: true } })
  const bodies: string[] = []
  const job = durably.defineJob({ name: 'order', input: z.object({ amount: z.number() }) }, async (ctx, { amount }) => {
    const step = <T>(name: string, body: () => T) =>
      ctx.run(name, () => {
        bodies.push(name)
        return body()
      })
    const price = await step('price', () => amount * 2)
    await step('charge', () => price)
    if (amount > 100) throw new Error('too much')
    return step('ship', () => `shipped for ${price}, of ${amount}`)
  })
  return { durably, job, bodies }
}

describe('fork()', () => {
  it('goes on after a step, with what that and those before it came to, and with another payload', async () => {
    const { durably, job, bodies } = office()
    const failed = await job.trigger({ amount: 101 }, { labels: { team: 'red' }, tenant: 't', priority: 3 })
    await durably.runUntilIdle()
    const forked = await durably.fork(failed.id, { after: 'charge', payload: { amount: 50 } })
    expect(forked).toMatchObject({
      ...{ status: 'pending', forkedFrom: failed.id, labels: { team: 'red' }, tenant: 't', priority: 3, attempt: 1 },
      ...{ payload: { amount: 50 }, currentStepIndex: 2 },
    })
    bodies.length = 0
    await durably.runUntilIdle()
    expect(bodies).toEqual(['ship'])
    expect(await durably.getRun(forked.id)).toMatchObject({ status: 'completed', output: 'shipped for 202, of 50' })
    expect(await durably.getRun(failed.id)).toMatchObject({ status: 'failed', forkedFrom: null })
  })

  it('begins anew without a step, with the payload of the run', async () => {
    const { durably, job, bodies } = office()
    const first = await job.trigger({ amount: 1 })
    await durably.runUntilIdle()
    const heard: string[] = []
    durably.on('run:trigger', ({ runId }) => heard.push(runId))
    const forked = await durably.fork(first.id)
    expect(heard).toEqual([forked.id])
    await durably.runUntilIdle()
    expect(bodies).toEqual(['price', 'charge', 'ship', 'price', 'charge', 'ship'])
    expect((await durably.getEvents(forked.id))[0]).toMatchObject({
      type: 'run:trigger',
      seq: 1,
      payload: { amount: 1 },
    })
  })

  it('wakes the worker', async () => {
    const { durably, job } = office()
    const first = await job.trigger({ amount: 1 })
    await durably.runUntilIdle()
    durably.start()
    const { id } = await durably.fork(first.id)
    expect(await job.wait(id)).toMatchObject({ output: 'shipped for 2, of 1' })
    await durably.close()
  })

  it('refuses what is not there, and payloads that the job refuses', async () => {
    const { durably, job } = office()
    const run = await job.trigger({ amount: 101 }, { tenant: 't' })
    await durably.runUntilIdle()
    await expect(durably.fork('none')).rejects.toThrow(NotFoundError)
    await expect(durably.scoped({ tenant: 'other' }).fork(run.id)).rejects.toThrow(NotFoundError)
    await expect(durably.fork(run.id, { after: 'ship' })).rejects.toThrow(InvalidOptionError)
    await expect(durably.fork(run.id, { payload: { amount: 'one' } })).rejects.toThrow('amount')
    expect(await durably.getRuns()).toHaveLength(1)
    const { forks: _, ...storage } = createMemoryStorage()
    const without = createDurably({ storage, logger: null })
    await expect(without.fork(run.id)).rejects.toMatchObject({ code: 'CAPABILITY_MISSING', capability: 'forks' })
  })

  it('does not take over children that go on', async () => {
    const { durably, job } = office()
    durably.defineJob({ name: 'parent', input: z.unknown() }, async (ctx) => {
      const child = await ctx.trigger('child', job, { amount: 1 })
      const output = await ctx.wait('end', child)
      return ctx.run('tell', () => output)
    })
    const parent = await durably.trigger('parent')
    await durably.runUntilIdle({ budgetMs: 0 })
    durably.pauseJob('order')
    await durably.runUntilIdle()
    const [child] = await durably.getRuns({ jobName: 'order' })
    const refused = await durably.fork(parent.id, { after: 'child' }).catch((error: ConflictError) => error)
    expect(refused).toMatchObject({ code: 'CONFLICT', runId: child?.id, status: 'pending' })
    durably.resumeJob('order')
    await durably.runUntilIdle()
    const forked = await durably.fork(parent.id, { after: 'child' })
    await durably.runUntilIdle()
    expect(await durably.getRun(forked.id)).toMatchObject({ status: 'completed', output: 'shipped for 2, of 1' })
    expect(await durably.getRuns({ jobName: 'order' })).toHaveLength(1)
  })
})
