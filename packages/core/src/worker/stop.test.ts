import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  anything,
  type Bench,
  createBench,
  createFaulty,
  createGate,
  createMortal,
  found,
  recordEvents,
} from '../testing/test-bench'
import { settled } from '../testing/fake-clock'

let bench: Bench

beforeEach(() => {
  bench = createBench()
})

afterEach(() => bench.close())

const forever = () => new Promise<never>(() => {})

async function isOpen(promise: Promise<unknown>): Promise<boolean> {
  return Promise.race([promise.then(() => false), settled().then(() => true)])
}

describe('stop', () => {
  it('waits for the run in progress and takes no other', async () => {
    const gate = createGate()
    const { durably, job, now } = await bench.perform(async (ctx) => {
      await ctx.run('a', () => gate.opened)
      await ctx.run('b', () => {})
      return 'done'
    })
    const stopped = durably.stop()
    const next = await job.trigger({})
    await bench.clock.advance(60_000)
    expect(await isOpen(stopped)).toBe(true)
    expect(durably.health().worker).toBe('stopping')
    gate.open()
    await stopped
    expect(durably.health().worker).toBe('stopped')
    expect(await now()).toMatchObject({ status: 'completed', output: 'done', crashCount: 0 })
    expect(await durably.getRun(next.id)).toMatchObject({ status: 'pending' })
  })

  it('does nothing when nothing was started, and resolves at once for an idle worker', async () => {
    const durably = bench.open()
    await durably.stop()
    durably.start()
    await settled()
    await durably.stop()
    expect(bench.clock.pendingTimers()).toBe(0)
  })

  it('leaves no timer behind right after start', async () => {
    const durably = bench.open()
    durably.start()
    await durably.stop()
    await settled()
    expect(bench.clock.pendingTimers()).toBe(0)
  })

  it('leaves no timer behind when it had a timeout that was not needed', async () => {
    const durably = bench.open()
    durably.start()
    await settled()
    await durably.stop({ timeout: 10_000 })
    expect(bench.clock.pendingTimers()).toBe(0)
  })

  it('renews the lease while it waits', async () => {
    const gate = createGate()
    const { durably, now } = await bench.perform(() => gate.opened)
    const other = bench.open()
    other.defineJob({ name: 'job', input: anything }, () => 'someone else')
    other.start()
    const stopped = durably.stop()
    await bench.clock.advance(100_000)
    expect(await now()).toMatchObject({ status: 'running', crashCount: 0 })
    gate.open()
    await stopped
    expect(await now()).toMatchObject({ status: 'completed', output: undefined })
  })

  it('can be called by many', async () => {
    const gate = createGate()
    const { durably } = await bench.perform(() => gate.opened)
    const stops = Promise.all([durably.stop(), durably.stop(), durably.stop()])
    gate.open()
    await stops
    expect(durably.health().worker).toBe('stopped')
  })
})

describe('stop with a timeout', () => {
  it('releases the run then, which is no crash, and another worker goes on', async () => {
    const ran: string[] = []
    const reasons: unknown[] = []
    const { durably, run, events, now } = await bench.perform(async (ctx) => {
      await ctx.run('a', () => ran.push('a'))
      await ctx.run('b', async ({ signal }) => {
        ran.push('b')
        signal.addEventListener('abort', () => reasons.push(signal.reason))
        await forever()
      })
    })
    const stopped = durably.stop({ timeout: 1000 })
    await bench.clock.advance(999)
    expect(await isOpen(stopped)).toBe(true)
    await bench.clock.advance(1)
    await bench.clock.advance(0)
    await stopped
    expect(reasons).toMatchObject([{ code: 'SHUTDOWN', reason: 'shutdown' }])
    expect(await now()).toMatchObject({
      status: 'pending',
      attempt: 1,
      crashCount: 0,
      ownerId: null,
      error: null,
      availableAt: run.createdAt,
    })
    expect(events.at(-1)).toMatchObject({ type: 'run:release', runId: run.id, jobName: 'job' })
    const other = bench.open()
    other.defineJob({ name: 'job', input: anything }, async (ctx) => {
      await ctx.run('a', () => ran.push('a again'))
      return ctx.run('b', () => 'went on')
    })
    other.start()
    await settled()
    expect(ran).toEqual(['a', 'b'])
    expect(await now()).toMatchObject({ status: 'completed', output: 'went on', attempt: 1 })
  })

  it('is not felt by a run that ends in time', async () => {
    const gate = createGate()
    const { durably, now } = await bench.perform(() => gate.opened)
    const stopped = durably.stop({ timeout: 1000 })
    gate.open()
    await stopped
    expect(await now()).toMatchObject({ status: 'completed' })
    expect(bench.clock.pendingTimers()).toBe(0)
  })

  it('can be given when one waits already', async () => {
    const { durably, now } = await bench.perform(forever)
    const patient = durably.stop()
    const impatient = durably.stop({ timeout: 100 })
    await bench.clock.advance(200)
    await Promise.all([patient, impatient])
    expect(await now()).toMatchObject({ status: 'pending', crashCount: 0 })
  })

  it('is not seen by the job: no catch, no finally', async () => {
    const seen: string[] = []
    const gate = createGate()
    const { durably, now } = await bench.perform(async (ctx) => {
      await gate.opened
      try {
        await ctx.run('next', () => seen.push('body'))
      } catch {
        seen.push('catch')
      } finally {
        seen.push('finally')
      }
    })
    const stopped = durably.stop({ timeout: 0 })
    await bench.clock.advance(10)
    gate.open()
    await stopped
    await settled()
    expect(seen).toEqual([])
    expect(await now()).toMatchObject({ status: 'pending' })
  })

  it('does not fail a run whose body answers the signal with its own error', async () => {
    const { durably, now } = await bench.perform((ctx) =>
      ctx.run(
        'a',
        ({ signal }) =>
          new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('aborted')))),
      ),
    )
    const stopped = durably.stop({ timeout: 0 })
    await bench.clock.advance(10)
    await stopped
    expect(await now()).toMatchObject({ status: 'pending', error: null })
    expect(await durably.getSteps((await now()).id)).toEqual([])
  })

  it('makes the run cancelled when that was asked for elsewhere meanwhile', async () => {
    // One that does not tell of it: the worker has not heard when it stops.
    const { watch: _, ...storage } = bench.storage
    const { durably, run, now, events } = await bench.perform(forever, { storage })
    await bench.open().cancel(run.id)
    const stopped = durably.stop({ timeout: 0 })
    await bench.clock.advance(10)
    await stopped
    expect(await now()).toMatchObject({ status: 'cancelled' })
    expect(events.at(-1)).toMatchObject({ type: 'run:cancel', requested: false })
  })

  it('ends also when the database does not answer any more', async () => {
    const mortal = createMortal(bench.storage)
    const { durably } = await bench.perform(forever, { storage: mortal.storage })
    mortal.kill()
    const stopped = durably.stop({ timeout: 1000 })
    await bench.clock.advance(10_000)
    expect(await isOpen(stopped)).toBe(false)
  })

  it('gives a run back that was being claimed at that moment', async () => {
    const gate = createGate()
    const storage: typeof bench.storage = {
      ...bench.storage,
      async claim(params) {
        const runs = await bench.storage.claim(params)
        if (runs.length > 0) await gate.opened
        return runs
      },
    }
    let ran = false
    const durably = bench.open({ storage })
    const job = durably.defineJob({ name: 'job', input: anything }, (ctx) =>
      ctx.run('a', () => {
        ran = true
      }),
    )
    durably.start()
    const { id } = await job.trigger({})
    await settled()
    const stopped = durably.stop()
    gate.open()
    await bench.clock.advance(10)
    await stopped
    expect(ran).toBe(false)
    expect(await durably.getRun(id)).toMatchObject({ status: 'pending', crashCount: 0, ownerId: null })
  })
})

describe('start', () => {
  it('works again after stop', async () => {
    const { durably, job } = await bench.perform(() => 'done')
    await durably.stop()
    const { id } = await job.trigger({})
    await bench.clock.advance(5000)
    expect(await durably.getRun(id)).toMatchObject({ status: 'pending' })
    durably.start()
    await settled()
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed' })
  })

  it('called twice is one worker', async () => {
    const durably = bench.open()
    durably.start()
    await settled()
    const timers = bench.clock.pendingTimers()
    durably.start()
    await settled()
    expect(bench.clock.pendingTimers()).toBe(timers)
  })

  it('during a stop is not lost', async () => {
    const gate = createGate()
    const { durably, job } = await bench.perform(() => gate.opened)
    const stopped = durably.stop()
    durably.start()
    gate.open()
    await stopped
    await settled()
    const { id } = await job.trigger({})
    await bench.clock.advance(2000)
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed' })
  })
})

describe('close', () => {
  it('releases the runs in progress', async () => {
    const { durably, now } = await bench.perform(forever)
    const closed = durably.close()
    await bench.clock.advance(10)
    await closed
    expect(await now()).toMatchObject({ status: 'pending', crashCount: 0 })
  })

  it('rejects those who wait, takes plugins down in reverse, then closes the storage, once', async () => {
    const calls: string[] = []
    const storage = { ...bench.storage, close: async () => void calls.push('storage') }
    const durably = bench.open({ storage })
    durably.use({ name: 'one', install: () => () => void calls.push('one') })
    durably.use({ name: 'two', install: () => async () => void calls.push('two') })
    const job = durably.defineJob({ name: 'job', input: anything }, () => {})
    const { id } = await job.trigger({})
    const waiting = job.wait(id).catch((error: unknown) => error)
    await settled()
    await Promise.all([durably.close(), durably.close()])
    await durably.close()
    expect(await waiting).toMatchObject({ code: 'CLOSED' })
    expect(calls).toEqual(['two', 'one', 'storage'])
  })

  it('closes the storage also when a plugin fails to go', async () => {
    let closed = false
    const storage = {
      ...bench.storage,
      close: async () => {
        closed = true
      },
    }
    const durably = bench.open({ storage })
    durably.use({ name: 'bad', install: () => () => Promise.reject(new Error('no')) })
    await durably.close().catch(() => {})
    expect(closed).toBe(true)
  })

  it('leaves no timer behind, whatever was going on', async () => {
    const faulty = createFaulty(bench.storage)
    const { durably, job, run } = await bench.perform(forever, { storage: faulty.storage })
    void job.wait(run.id).catch(() => {})
    faulty.fail()
    await bench.clock.advance(7000)
    const closed = durably.close()
    await bench.clock.advance(20_000)
    await closed
    expect(bench.clock.pendingTimers()).toBe(0)
  })

  it('is the end: what comes after says so', async () => {
    const durably = bench.open()
    const job = durably.defineJob({ name: 'job', input: anything }, () => {})
    const { id } = await job.trigger({})
    await durably.close()
    expect(() => durably.start()).toThrow(expect.objectContaining({ code: 'CLOSED' }))
    await expect(job.wait(id)).rejects.toMatchObject({ code: 'CLOSED' })
    await bench.clock.advance(5000)
    expect(bench.clock.pendingTimers()).toBe(0)
  })
})

describe('health', () => {
  it('says what the worker is doing', async () => {
    const gate = createGate()
    const { durably, run } = await bench.perform(() => gate.opened, { workerId: 'me' })
    expect(durably.health()).toMatchObject({ workerId: 'me', worker: 'running', active: [run.id] })
    gate.open()
    await durably.stop()
    expect(durably.health()).toMatchObject({ workerId: 'me', worker: 'stopped', active: [] })
  })

  it('shows trouble until the storage answers again', async () => {
    const faulty = createFaulty(bench.storage)
    const durably = bench.open({ storage: faulty.storage })
    const errors = recordEvents(durably, ['worker:error'])
    durably.start()
    await settled()
    expect(durably.health().trouble).toBeNull()
    faulty.fail()
    await bench.clock.advance(2000)
    const { during, error, timestamp } = found(errors.at(-1))
    expect(error).toBe('The database is away.')
    expect(durably.health().trouble).toEqual({ during, error, at: timestamp })
    faulty.heal()
    await bench.clock.advance(6000)
    expect(durably.health().trouble).toBeNull()
  })
})
