import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { SchemaTooNewError } from '../index'
import { newRun } from '../testing/contract/builders'
import {
  anything,
  type Bench,
  createBench,
  createFaulty,
  createGate,
  createMortal,
  found,
  wrapStorage,
} from '../testing/test-bench'
import { settled } from '../testing/fake-clock'

let bench: Bench

beforeEach(() => {
  bench = createBench()
})

afterEach(() => bench.close())

const numbers = (count: number) => Array.from({ length: count }, (_, n) => n)

const forever = () => new Promise<never>(() => {})

describe('runUntilIdle', () => {
  it('runs what is due and what that triggers, then returns', async () => {
    const durably = bench.open()
    const order: unknown[] = []
    const second = durably.defineJob({ name: 'second', input: anything }, (_ctx, payload) => void order.push(payload))
    const first = durably.defineJob({ name: 'first', input: anything }, async (_ctx, payload) => {
      order.push(payload)
      await second.trigger(`${payload}+`)
    })
    await first.trigger('a')
    await first.trigger('b')
    expect(await durably.runUntilIdle()).toEqual({ ran: 4, nextWakeAt: null })
    expect(order).toEqual(['a', 'b', 'a+', 'b+'])
    expect(durably.health().worker).toBe('stopped')
    expect(bench.clock.pendingTimers()).toBe(0)
  })

  it('does nothing when nothing is there', async () => {
    expect(await bench.open().runUntilIdle()).toEqual({ ran: 0, nextWakeAt: null })
  })

  it('counts failures too', async () => {
    const durably = bench.open()
    const job = durably.defineJob({ name: 'job', input: anything }, () => Promise.reject(new Error('no')))
    await job.trigger({})
    expect(await durably.runUntilIdle()).toMatchObject({ ran: 1 })
    expect(await durably.counts()).toMatchObject({ failed: 1 })
  })

  it('uses all slots', async () => {
    const durably = bench.open({ concurrency: 3 })
    let inside = 0
    let most = 0
    const job = durably.defineJob({ name: 'job', input: anything }, async () => {
      inside += 1
      most = Math.max(most, inside)
      await settled()
      inside -= 1
    })
    await job.batchTrigger(Array.from({ length: 7 }, (_, payload) => ({ payload })))
    expect(await durably.runUntilIdle()).toMatchObject({ ran: 7 })
    expect(most).toBe(3)
  })

  it('says when the next run is due', async () => {
    const durably = bench.open()
    const job = durably.defineJob({ name: 'job', input: anything }, () => {})
    await job.trigger({}, { delay: 60_000 })
    await job.trigger({}, { delay: 30_000 })
    await job.trigger({})
    expect(await durably.runUntilIdle()).toEqual({ ran: 1, nextWakeAt: '2030-01-01T00:00:30.000Z' })
    await bench.clock.advance(30_000)
    expect(await durably.runUntilIdle()).toEqual({ ran: 1, nextWakeAt: '2030-01-01T00:01:00.000Z' })
  })

  it('says when the lease of a lost worker runs out, and takes its run then', async () => {
    const mortal = createMortal(bench.storage)
    const { now } = await bench.perform(forever, { storage: mortal.storage })
    mortal.kill()
    const durably = bench.open()
    durably.defineJob({ name: 'job', input: anything }, () => 'rescued')
    expect(await durably.runUntilIdle()).toEqual({ ran: 0, nextWakeAt: '2030-01-01T00:00:30.000Z' })
    await bench.clock.advance(30_001)
    expect(await durably.runUntilIdle()).toEqual({ ran: 1, nextWakeAt: null })
    expect(await now()).toMatchObject({ status: 'completed', output: 'rescued' })
  })

  it('does not wait for a concurrency key that someone else has', async () => {
    const gate = createGate()
    const { job } = await bench.perform(() => gate.opened)
    await job.trigger({}, { concurrencyKey: 'k' })
    const holder = bench.open()
    holder.defineJob({ name: 'job', input: anything }, () => gate.opened)
    holder.start()
    await settled()
    const waiting = await job.trigger({}, { concurrencyKey: 'k' })
    const durably = bench.open()
    durably.defineJob({ name: 'job', input: anything }, () => 'mine')
    const { ran, nextWakeAt } = await durably.runUntilIdle()
    expect(ran).toBe(0)
    expect(Date.parse(String(nextWakeAt))).toBeGreaterThan(bench.clock.now())
    expect(await durably.getRun(waiting.id)).toMatchObject({ status: 'pending' })
    gate.open()
  })

  it('ignores jobs that it does not know', async () => {
    const other = bench.open().defineJob({ name: 'other', input: anything }, () => {})
    await other.trigger({})
    expect(await bench.open().runUntilIdle()).toMatchObject({ ran: 0 })
  })

  it('claims nothing more when its budget is over, and gives back what does not end in 5 s', async () => {
    const durably = bench.open()
    const reasons: unknown[] = []
    const job = durably.defineJob({ name: 'job', input: anything }, (ctx) =>
      ctx.run('deaf', ({ signal }) => {
        signal.addEventListener('abort', () => reasons.push(signal.reason))
        return forever()
      }),
    )
    const first = await job.trigger({})
    const second = await job.trigger({})
    const draining = durably.runUntilIdle({ budgetMs: 1000 })
    await bench.clock.advance(1000)
    expect(reasons).toMatchObject([{ code: 'SHUTDOWN' }])
    await bench.clock.advance(4999)
    expect(await durably.getRun(first.id)).toMatchObject({ status: 'running' })
    await bench.clock.advance(2)
    expect(await draining).toEqual({ ran: 1, nextWakeAt: expect.any(String) })
    expect(await durably.getRun(first.id)).toMatchObject({ status: 'pending', crashCount: 0, attempt: 1 })
    expect(await durably.getRun(second.id)).toMatchObject({ status: 'pending' })
    expect(bench.clock.pendingTimers()).toBe(0)
  })

  it('returns when its budget is over, whatever a started worker is busy with', async () => {
    const durably = bench.open()
    const gate = createGate()
    const job = durably.defineJob({ name: 'job', input: anything }, () => gate.opened)
    durably.start()
    await job.trigger({})
    await settled()
    let isBack = false
    const draining = durably.runUntilIdle({ budgetMs: 1000 }).then(() => {
      isBack = true
    })
    await bench.clock.advance(999)
    expect(isBack).toBe(false)
    await bench.clock.advance(1)
    expect(isBack).toBe(true)
    gate.open()
    await draining
    await settled()
    expect(await durably.counts()).toMatchObject({ completed: 1 })
  })

  it('starts no new body when its budget is over, and keeps what finishes in time', async () => {
    const durably = bench.open()
    const gate = createGate()
    const ran: string[] = []
    const job = durably.defineJob({ name: 'job', input: anything }, async (ctx) => {
      await ctx.run('a', async () => {
        ran.push('a')
        await gate.opened
      })
      return ctx.run('b', () => ran.push('b'))
    })
    const { id } = await job.trigger({})
    const draining = durably.runUntilIdle({ budgetMs: 1000 })
    await bench.clock.advance(2000)
    gate.open()
    await bench.clock.advance(10)
    const { ran: count, nextWakeAt } = await draining
    expect(count).toBe(1)
    expect(nextWakeAt).toBe(new Date(Date.parse('2030-01-01T00:00:02.000Z')).toISOString())
    expect(ran).toEqual(['a'])
    expect(await durably.getRun(id)).toMatchObject({ status: 'pending' })
    expect(await durably.getSteps(id)).toMatchObject([{ name: 'a', status: 'completed' }])
    expect(await durably.runUntilIdle()).toMatchObject({ ran: 1, nextWakeAt: null })
    expect(ran).toEqual(['a', 'b'])
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed', attempt: 1 })
  })

  it('ends at a signal, at once when it is aborted already', async () => {
    const durably = bench.open()
    const job = durably.defineJob({ name: 'job', input: anything }, (ctx) =>
      ctx.run(
        'a',
        ({ signal }) =>
          new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
      ),
    )
    await job.trigger({})
    expect(await durably.runUntilIdle({ signal: AbortSignal.abort() })).toMatchObject({ ran: 0 })
    const controller = new AbortController()
    const draining = durably.runUntilIdle({ signal: controller.signal })
    await settled()
    controller.abort()
    await bench.clock.advance(10)
    expect(await draining).toMatchObject({ ran: 1 })
    expect(await durably.counts()).toMatchObject({ pending: 1, failed: 0 })
  })

  it('renews its leases', async () => {
    const durably = bench.open()
    const gate = createGate()
    const job = durably.defineJob({ name: 'job', input: anything }, () => gate.opened)
    const { id } = await job.trigger({})
    const draining = durably.runUntilIdle()
    await settled()
    const other = bench.open()
    other.defineJob({ name: 'job', input: anything }, () => 'stolen')
    other.start()
    await bench.clock.advance(100_000)
    gate.open()
    await settled()
    expect(await draining).toMatchObject({ ran: 1 })
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed', crashCount: 0, output: undefined })
  })

  it('beside a started worker does not stop it', async () => {
    const durably = bench.open()
    const job = durably.defineJob({ name: 'job', input: anything }, () => 'done')
    durably.start()
    await settled()
    await job.trigger({})
    await durably.runUntilIdle()
    expect(durably.health().worker).toBe('running')
    const { id } = await job.trigger({})
    await settled()
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed' })
  })

  it('can be followed by start, also while it runs', async () => {
    const durably = bench.open()
    const gate = createGate()
    const job = durably.defineJob({ name: 'job', input: anything }, (_ctx, wait) =>
      wait === true ? gate.opened : undefined,
    )
    await job.trigger(true)
    const draining = durably.runUntilIdle()
    await settled()
    durably.start()
    gate.open()
    await draining
    const { id } = await job.trigger(false)
    await bench.clock.advance(2000)
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed' })
  })

  it('twice at once shares the work', async () => {
    const durably = bench.open()
    const bodies: unknown[] = []
    const job = durably.defineJob({ name: 'job', input: anything }, async (_ctx, payload) => {
      bodies.push(payload)
      await settled()
    })
    await job.batchTrigger(Array.from({ length: 5 }, (_, payload) => ({ payload })))
    await Promise.all([durably.runUntilIdle(), durably.runUntilIdle()])
    expect(bodies).toEqual([0, 1, 2, 3, 4])
    expect(durably.health().worker).toBe('stopped')
    expect(bench.clock.pendingTimers()).toBe(0)
  })

  it('does not take the look of another call, which came before the run, for its own', async () => {
    const answered = createGate()
    let claims = 0
    const late = wrapStorage(bench.storage, async (operation, call) => {
      const answer = await call()
      if (operation === 'claim' && ++claims === 1) await answered.opened
      return answer
    })
    const durably = bench.open({ storage: late })
    const job = durably.defineJob({ name: 'job', input: anything }, () => 'done')
    const first = durably.runUntilIdle()
    await settled()
    const { id } = await job.trigger({})
    const second = durably.runUntilIdle()
    await settled()
    answered.open()
    await second
    expect(await job.getRun(id)).toMatchObject({ status: 'completed' })
    await first
    expect(durably.health().worker).toBe('stopped')
    expect(bench.clock.pendingTimers()).toBe(0)
  })

  it('is not cut short by another call that has just found nothing', async () => {
    const durably = bench.open()
    const job = durably.defineJob({ name: 'job', input: anything }, () => 'done')
    for (let turns = 0; turns < 60; turns++) {
      const first = durably.runUntilIdle()
      for (let turn = 0; turn < turns; turn++) await Promise.resolve()
      const { id } = await bench.storage.enqueue([newRun({ jobName: 'job' })]).then(([answer]) => found(answer).run)
      await durably.runUntilIdle()
      expect(await job.getRun(id), `after ${turns} turns`).toMatchObject({ status: 'completed' })
      await first
    }
  })

  it('takes the runs of a lost worker for each caller', async () => {
    const mortal = createMortal(bench.storage)
    const { now } = await bench.perform(forever, { storage: mortal.storage })
    mortal.kill()
    await bench.clock.advance(30_001)
    const durably = bench.open()
    durably.defineJob({ name: 'job', input: anything }, () => 'rescued')
    const statuses = [durably.runUntilIdle(), durably.runUntilIdle()].map(async (call) => {
      await call
      return (await now()).status
    })
    expect(await Promise.all(statuses)).toEqual(['completed', 'completed'])
  })

  it('goes on for one caller when the budget of another is over', async () => {
    const durably = bench.open()
    const gate = createGate()
    const reasons: unknown[] = []
    const job = durably.defineJob({ name: 'job', input: anything }, (ctx) =>
      ctx.run('a', ({ signal }) => {
        signal.addEventListener('abort', () => reasons.push(signal.reason))
        return gate.opened
      }),
    )
    await job.batchTrigger([{ payload: 1 }, { payload: 2 }])
    const short = durably.runUntilIdle({ budgetMs: 1000 })
    const long = durably.runUntilIdle()
    await bench.clock.advance(1000)
    expect(await short).toMatchObject({ ran: 1 })
    gate.open()
    expect(await long).toMatchObject({ ran: 2, nextWakeAt: null })
    expect(reasons).toEqual([])
    expect(await durably.counts()).toMatchObject({ completed: 2 })
  })

  it('that comes while another gives back what it could not end begins it again', async () => {
    const durably = bench.open()
    let isSlow = true
    const job = durably.defineJob({ name: 'job', input: anything }, (ctx) =>
      ctx.run('a', () => (isSlow ? forever() : 'done')),
    )
    const { id } = await job.trigger({})
    const short = durably.runUntilIdle({ budgetMs: 1000 })
    await bench.clock.advance(3000)
    isSlow = false
    const next = durably.runUntilIdle()
    await bench.clock.advance(3000)
    expect(await short).toMatchObject({ nextWakeAt: expect.anything() })
    await next
    expect(await job.getRun(id)).toMatchObject({ status: 'completed', crashCount: 0, attempt: 1 })
    expect(durably.health().worker).toBe('stopped')
  })

  it('returns or rejects when the storage is away, and is itself again afterwards', async () => {
    const faulty = createFaulty(bench.storage)
    const durably = bench.open({ storage: faulty.storage })
    const job = durably.defineJob({ name: 'job', input: anything }, () => 'done')
    const { id } = await job.trigger({})
    faulty.fail()
    await durably.runUntilIdle().catch(() => {})
    expect(durably.health().worker).toBe('stopped')
    expect(bench.clock.pendingTimers()).toBe(0)
    faulty.heal()
    expect(await durably.runUntilIdle()).toMatchObject({ ran: 1 })
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed' })
  })

  it.each([-1, Number.NaN])('refuses a budget of %s', async (budgetMs) => {
    await expect(bench.open().runUntilIdle({ budgetMs })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })
})

describe('runUntilIdle with a parent that rests', () => {
  /** From the first time that the parent rests, reads of what is due fail for so long. */
  async function drain(outageMs: number) {
    const faulty = createFaulty(bench.storage)
    const durably = bench.open({ storage: faulty.storage, concurrency: 10 })
    const errors: string[] = []
    durably.onError((_error, during) => errors.push(during))
    const child = durably.defineJob({ name: 'child', input: anything }, (ctx, n) => ctx.sleep('nap', 2 * Number(n)))
    const job = durably.defineJob({ name: 'parent', input: anything }, async (ctx) => {
      return (await ctx.waitAll('results', await ctx.triggerAll('start', child, numbers(20)))).length
    })
    durably.on('run:suspend', ({ jobName }) => {
      if (jobName !== 'parent' || errors.length > 0) return
      faulty.fail('nextDue')
      bench.clock.schedule(outageMs, () => faulty.heal())
    })
    const { id } = await job.trigger({})
    const drained = durably.runUntilIdle({ budgetMs: 60_000 })
    drained.catch(() => {})
    for (let ms = 0; ms < 50; ms++) await bench.clock.advance(1)
    for (let ms = 0; ms < 5000; ms += 100) await bench.clock.advance(100)
    return { durably, drained, errors, now: () => durably.getRun(id) }
  }

  it('goes on after a read that failed', async () => {
    const { durably, drained, errors, now } = await drain(5)
    expect(await drained).toMatchObject({ nextWakeAt: null })
    expect(new Set(errors)).toEqual(new Set(['read next due']))
    expect(await now()).toMatchObject({ status: 'completed', output: 20 })
    expect(durably.health().worker).toBe('stopped')
    expect(bench.clock.pendingTimers()).toBe(0)
  })

  it('leaves nothing behind when the storage stays away', async () => {
    const { durably, drained } = await drain(3_600_000)
    await expect(drained).rejects.toMatchObject({ code: 'STORAGE_UNAVAILABLE' })
    expect(durably.health().worker).toBe('stopped')
    // Which is the end of the outage.
    expect(bench.clock.pendingTimers()).toBe(1)
  })
})

it('rejects where the tables ask for newer code, instead of naming a time to come again', async () => {
  const tooNew = new SchemaTooNewError(9, 1)
  const storage = Object.assign({}, bench.storage, { checkSchema: () => Promise.reject(tooNew) })
  const durably = bench.open({ storage })
  const job = durably.defineJob({ name: 'job', input: anything }, () => 1)
  await job.trigger({})
  await expect(durably.runUntilIdle()).rejects.toBe(tooNew)
  expect(durably.health().worker).toBe('stopped')
})
