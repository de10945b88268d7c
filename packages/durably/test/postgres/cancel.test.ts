import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { reportSuite } from '../../../../test/report'
import type { DurablyEvent, JobContext, SqlDurably } from '../../src/index'
import { withLogPersistence } from '../../src/plugins'
import { newPlace } from './kit'

const HEARTBEAT_MS = 100

/** A worker in whose hands runs are, and an instance that only gives orders. */
async function openBoth(execute: (ctx: JobContext) => unknown) {
  const place = await newPlace()
  const owner = place.open({ heartbeatInterval: HEARTBEAT_MS, staleThreshold: 600_000, concurrency: 4 })
  owner.use(withLogPersistence())
  const job = owner.defineJob({ name: 'job', input: z.object({}) }, execute)
  return { place, owner, api: place.open(), job }
}

function next<T extends DurablyEvent['type']>(durably: SqlDurably, type: T): Promise<DurablyEvent<T>> {
  return new Promise((resolve) => {
    const off = durably.on(type, (event) => {
      off()
      resolve(event)
    })
  })
}

const statusOf = async (durably: SqlDurably, id: string) => (await durably.getRun(id))?.status

describe('cancel() on another instance than that which executes', () => {
  it('is stored when it returns, and the owner learns of it at its next renewal, in the middle of a body', async () => {
    const reasons: unknown[] = []
    const bodies: string[] = []
    const { owner, api, job } = await openBoth(async (ctx) => {
      await ctx
        .run('long', async ({ signal }) => {
          bodies.push('long')
          await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
        })
        .catch((error: unknown) => reasons.push(error))
      await ctx.run('late', () => bodies.push('late')).catch(() => {})
      return 'returned all the same'
    })
    const started = next(owner, 'run:start')
    owner.start()
    const { id } = await job.trigger({})
    await started
    const ended = next(owner, 'run:cancel')
    expect(await api.cancel(id)).toMatchObject({ status: 'running', cancelRequestedAt: expect.any(String) })
    expect(await owner.getRun(id)).toMatchObject({ cancelRequestedAt: expect.any(String) })
    await ended
    expect(await api.getRun(id)).toMatchObject({ status: 'cancelled', output: null, error: null, ownerId: null })
    expect(reasons).toMatchObject([{ code: 'CANCELLED', reason: 'cancelled' }])
    expect(bodies).toEqual(['long'])
    const events = await api.getEvents(id)
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1))
    expect(events.at(-1)).toMatchObject({ type: 'run:cancel', requested: false })
    await expect(api.cancel(id)).rejects.toMatchObject({ code: 'CONFLICT' })
  })

  it('is learned of at the next commit, without waiting for a renewal', async () => {
    const place = await newPlace()
    // The first renewal would come too late for this test.
    const owner = place.open({ heartbeatInterval: 1_800_000, staleThreshold: 3_600_000, listen: false })
    const api = place.open()
    let goOn = () => {}
    const gate = new Promise<void>((resolve) => {
      goOn = resolve
    })
    const signals: unknown[] = []
    const ran: number[] = []
    const job = owner.defineJob({ name: 'job', input: z.object({}) }, async (ctx) => {
      ctx.signal.addEventListener('abort', () => signals.push(ctx.signal.reason))
      await ctx.run('first', () => gate)
      for (let n = 0; n < 100; n++) await ctx.run(`step ${n}`, () => ran.push(n))
    })
    const started = next(owner, 'run:start')
    owner.start()
    const { id } = await job.trigger({})
    await started
    const ended = next(owner, 'run:cancel')
    await api.cancel(id)
    goOn()
    await ended
    expect(await statusOf(api, id)).toBe('cancelled')
    expect(signals).toMatchObject([{ reason: 'cancelled' }])
    expect(ran).toEqual([])
    expect(await api.getSteps(id)).toMatchObject([{ name: 'first', status: 'completed' }])
  })

  it('is heard at once by the holder, who neither commits nor renews meanwhile', async () => {
    const place = await newPlace()
    const owner = place.open({ heartbeatInterval: 1_800_000, staleThreshold: 3_600_000 })
    const api = place.open()
    let heardAt = 0
    const job = owner.defineJob({ name: 'job', input: z.object({}) }, async (ctx) => {
      await ctx.run('long', ({ signal }) => {
        return new Promise((_resolve, reject) =>
          signal.addEventListener('abort', () => {
            heardAt = performance.now()
            reject(signal.reason)
          }),
        )
      })
    })
    owner.start()
    await expect.poll(() => place.listeners()).toHaveLength(1)
    const latencies: number[] = []
    for (let sample = 0; sample < 10; sample++) {
      const started = next(owner, 'run:start')
      const { id } = await job.trigger({})
      await started
      const ended = next(owner, 'run:cancel')
      await api.cancel(id)
      const storedAt = performance.now()
      await ended
      latencies.push(Math.max(heardAt - storedAt, 0))
      expect(await statusOf(api, id)).toBe('cancelled')
      // Until what there was to tell of this one is told.
      await new Promise((resolve) => setTimeout(resolve, 60))
    }
    const medianMs = (latencies.sort((a, b) => a - b)[5] ?? Number.NaN).toFixed(1)
    reportSuite({ suite: 'from a stored cancel() to the signal in another process', samples: 10, medianMs })
  })

  it('ends a run at once that nobody holds: due, delayed, waiting for a signal', async () => {
    const { owner, api, job } = await openBoth((ctx) => ctx.waitFor('never'))
    const waiting = await job.trigger({})
    await owner.runUntilIdle()
    expect(await api.getRun(waiting.id)).toMatchObject({ status: 'pending', waitingFor: { kind: 'steps' } })
    const delayed = await job.trigger({}, { delay: 60_000 })
    const due = await job.trigger({})
    for (const { id } of [waiting, delayed, due]) {
      expect(await api.cancel(id)).toMatchObject({ status: 'cancelled' })
      expect(await statusOf(owner, id)).toBe('cancelled')
    }
    const starts: string[] = []
    owner.on('run:start', ({ runId }) => starts.push(runId))
    await owner.runUntilIdle()
    await expect(api.signal(waiting.id, 'never')).rejects.toMatchObject({ code: 'CONFLICT' })
    expect(starts).toEqual([])
  })

  it('also cancels what is inside a transaction, with nothing of it kept', async () => {
    let begun = () => {}
    const hasBegun = new Promise<void>((resolve) => {
      begun = resolve
    })
    const { place, owner, api, job } = await openBoth((ctx) =>
      ctx.transaction('charge', { timeout: 600_000 }, async () => {
        begun()
        await new Promise(() => {})
      }),
    )
    owner.start()
    const { id } = await job.trigger({})
    await hasBegun
    const ended = next(owner, 'run:cancel')
    await api.cancel(id)
    await ended
    expect(await statusOf(api, id)).toBe('cancelled')
    expect(await api.getSteps(id)).toEqual([])
    const open =
      "select 1 from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'"
    await expect.poll(() => place.query(open)).toEqual([])
  })

  it('of cancel and complete, racing on two instances, one wins and stays', async () => {
    const { owner, api, job } = await openBoth((ctx) => ctx.run('quick', () => 'done'))
    owner.start()
    const triggered = await job.batchTrigger(Array.from({ length: 30 }, () => ({ payload: {} })))
    const answers = await Promise.allSettled(triggered.map(({ id }) => api.cancel(id)))
    await expect.poll(async () => (await api.counts()).running + (await api.counts()).pending).toBe(0)
    for (const [index, answer] of answers.entries()) {
      const status = await statusOf(api, triggered[index]?.id ?? '')
      if (answer.status === 'fulfilled') expect(status).toBe('cancelled')
      else expect([status, answer.reason]).toMatchObject(['completed', { code: 'CONFLICT' }])
    }
  })
})
