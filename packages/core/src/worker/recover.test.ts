import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Durably, JobContext, StepTools } from '../index'
import {
  anything,
  type Bench,
  createBench,
  createFaulty,
  createGate,
  createMortal,
  found,
  type JobBody,
  recordEvents,
} from '../testing/test-bench'
import { createFakeClock, settled } from '../testing/fake-clock'

let bench: Bench

beforeEach(() => {
  bench = createBench()
})

afterEach(() => bench.close())

const forever = () => new Promise<never>(() => {})

/** A worker that has taken the run and is gone. */
async function lostRun(execute: JobBody = forever, workerId = 'lost') {
  const mortal = createMortal(bench.storage)
  const lost = await bench.perform(execute, { storage: mortal.storage, workerId })
  mortal.kill()
  return lost
}

async function healthy(execute: JobBody = () => 'rescued', options: Parameters<Bench['open']>[0] = {}) {
  const durably = bench.open(options)
  durably.defineJob({ name: 'job', input: anything }, execute)
  const events = recordEvents(durably)
  durably.start()
  await settled()
  return { durably, events }
}

describe('a worker that is gone', () => {
  it('loses its run when the lease has run out, not before', async () => {
    const { now, run } = await lostRun()
    const { events } = await healthy()
    await bench.clock.advance(29_900)
    expect(await now()).toMatchObject({ status: 'running', ownerId: 'lost' })
    await bench.clock.advance(1200)
    expect(await now()).toMatchObject({ status: 'completed', output: 'rescued', attempt: 1 })
    expect(events.map(({ type }) => type)).toEqual(['run:recover', 'run:start', 'run:complete'])
    expect(events[0]).toMatchObject({ runId: run.id, jobName: 'job', crashed: true })
  })

  it('loses it at once to a worker that starts after that', async () => {
    const { now } = await lostRun()
    await bench.clock.advance(30_001)
    await healthy()
    expect(await now()).toMatchObject({ status: 'completed' })
  })

  it('loses it also when all slots of the others are taken', async () => {
    const { now } = await lostRun()
    const { durably } = await healthy(forever)
    await durably.getRuns()
    const busy = bench.open()
    const other = busy.defineJob({ name: 'other', input: anything }, forever)
    busy.start()
    await other.trigger({})
    await settled()
    await durably.stop()
    await bench.clock.advance(32_000)
    expect(await now()).toMatchObject({ status: 'pending', crashCount: 1, attempt: 1, ownerId: null })
  })

  it('keeps it as long as it renews, however long a step takes', async () => {
    const gate = createGate()
    const { now, events } = await bench.perform((ctx) => ctx.run('long', () => gate.opened))
    await healthy()
    await bench.clock.advance(600_000)
    gate.open()
    await settled()
    expect(await now()).toMatchObject({ status: 'completed', crashCount: 0 })
    expect(events.some(({ type }) => type === 'worker:lease-lost')).toBe(false)
  })

  it('leaves the run its place in the queue', async () => {
    const { run } = await lostRun()
    const order: string[] = []
    await bench.clock.advance(10)
    const { durably } = await healthy((ctx) => void order.push(ctx.runId), { workerId: 'rescuer' })
    await durably.stop()
    const later = bench.open()
    const job = later.defineJob({ name: 'job', input: anything }, () => {})
    const { id } = await job.trigger({})
    await bench.clock.advance(31_000)
    durably.start()
    await settled()
    expect(order).toEqual([run.id, id])
  })

  it('is recovered by name at once, for a caller who knows that it is dead', async () => {
    const { now } = await lostRun()
    await lostRun(forever, 'another')
    const { durably } = await healthy()
    expect(await durably.recover({ workerId: 'nobody' })).toBe(0)
    expect(await durably.recover({ workerId: 'lost' })).toBe(1)
    await settled()
    expect(await now()).toMatchObject({ status: 'completed' })
    expect(await durably.counts()).toMatchObject({ completed: 1, running: 1 })
  })

  it('gives back all it had, however many', async () => {
    const mortal = createMortal(bench.storage)
    const lost = bench.open({ storage: mortal.storage, workerId: 'lost', concurrency: 250 })
    const job = lost.defineJob({ name: 'job', input: anything }, forever)
    await job.batchTrigger(Array.from({ length: 250 }, (_, payload) => ({ payload })))
    lost.start()
    await settled()
    mortal.kill()
    const durably = bench.open()
    expect(await durably.counts()).toMatchObject({ running: 250 })
    expect(await durably.recover({ workerId: 'lost' })).toBe(250)
    expect(await durably.counts()).toMatchObject({ running: 0, pending: 250 })
  })

  it('is never the one that asks', async () => {
    const gate = createGate()
    const { durably, now } = await bench.perform(() => gate.opened, { workerId: 'me' })
    expect(await durably.recover({ workerId: 'me' })).toBe(0)
    expect(await now()).toMatchObject({ status: 'running', crashCount: 0 })
    gate.open()
  })

  it('may be named by its own successor', async () => {
    const { now } = await lostRun(forever, 'server-1')
    const { durably } = await healthy(() => 'rescued', { workerId: 'server-1' })
    expect(await durably.recover({ workerId: 'server-1' })).toBe(1)
    await settled()
    expect(await now()).toMatchObject({ status: 'completed' })
  })
})

describe('a worker that was only asleep', () => {
  /** Its time stands still while that of the storage goes on: another one takes the run over. */
  async function overtaken(execute: JobBody, options: Parameters<Bench['open']>[0] = {}) {
    const clock = createFakeClock()
    const asleep = await bench.perform(execute, { environment: { clock }, workerId: 'asleep', ...options })
    const { durably } = await healthy(() => 'rescued', options)
    await bench.clock.advance(32_000)
    expect(await asleep.now()).toMatchObject({ status: 'completed', output: 'rescued' })
    return { ...asleep, clock, rescuer: durably }
  }

  it('can store no step and no result, and is told once', async () => {
    const gate = createGate()
    const reasons: unknown[] = []
    const { now, events, run, rescuer, durably } = await overtaken(async (ctx) => {
      ctx.signal.addEventListener('abort', () => reasons.push(ctx.signal.reason))
      await Promise.all(['a', 'b', 'c'].map((name) => ctx.run(name, () => gate.opened)))
      return 'stale'
    })
    const before = await now()
    gate.open()
    await settled()
    expect(await now()).toEqual(before)
    expect(await rescuer.getSteps(run.id)).toEqual([])
    expect(events.filter(({ type }) => type === 'worker:lease-lost')).toMatchObject([
      { runId: run.id, jobName: 'job', workerId: 'asleep' },
    ])
    expect(reasons).toMatchObject([{ code: 'LEASE_LOST' }])
    expect(events.some(({ type }) => type === 'step:complete' || type === 'run:complete' || type === 'run:fail')).toBe(
      false,
    )
    expect(durably.health().active).toEqual([])
  })

  it('can store no checkpoint, progress or log', async () => {
    const gate = createGate()
    const saved: unknown[] = []
    const { run, rescuer, clock, now } = await overtaken((ctx) =>
      ctx.run('a', async ({ save }: StepTools) => {
        await gate.opened
        ctx.log.info('stale')
        ctx.progress(66)
        await save('stale').then(
          () => saved.push('saved'),
          () => saved.push('refused'),
        )
      }),
    )
    gate.open()
    await clock.advance(1000)
    expect(saved).toEqual(['refused'])
    expect(await rescuer.getSteps(run.id)).toEqual([])
    expect(await now()).toMatchObject({ progress: null, output: 'rescued' })
  })

  it('is not the end of the process for a checkpoint that nobody awaited', async () => {
    const gate = createGate()
    const unhandled: unknown[] = []
    const listen = (error: unknown) => unhandled.push(error)
    const { process } = globalThis as unknown as { process: { on: Listen; off: Listen } }
    type Listen = (event: 'unhandledRejection', listener: (error: unknown) => void) => void
    await overtaken((ctx) =>
      ctx.run('a', async ({ save }: StepTools) => {
        await gate.opened
        void save('stale')
      }),
    )
    process.on('unhandledRejection', listen)
    gate.open()
    await settled()
    await settled()
    process.off('unhandledRejection', listen)
    expect(unhandled).toEqual([])
  })

  it('starts no further body once it knows', async () => {
    const gate = createGate()
    const errors: unknown[] = []
    let ran = false
    const { clock } = await overtaken(async (ctx: JobContext) => {
      await ctx.run('a', () => gate.opened).catch((error: unknown) => errors.push(error))
      await ctx
        .run('b', () => {
          ran = true
        })
        .catch((error: unknown) => errors.push(error))
    })
    gate.open()
    await settled()
    // One rejection in a turn of the event loop.
    await clock.advance(1)
    expect(ran).toBe(false)
    expect(errors).toMatchObject([{ code: 'LEASE_LOST' }, { code: 'LEASE_LOST' }])
  })

  it('learns of it at the next renewal', async () => {
    const { clock, events, durably } = await overtaken((ctx) => ctx.run('a', forever))
    await clock.advance(5000)
    expect(events.filter(({ type }) => type === 'worker:lease-lost')).toHaveLength(1)
    await clock.advance(5000)
    expect(durably.health().active).toEqual([])
  })

  it('takes the next run as if nothing had happened', async () => {
    const gate = createGate()
    const { job, clock, rescuer, durably } = await overtaken((ctx) => (ctx.attempt === 1 ? gate.opened : 0))
    await rescuer.stop()
    gate.open()
    await clock.advance(6000)
    const { id } = await job.trigger({})
    await settled()
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed', ownerId: null })
  })

  it('keeps the run when nobody took it meanwhile', async () => {
    const clock = createFakeClock()
    const gate = createGate()
    const { now } = await bench.perform((ctx) => ctx.run('a', () => gate.opened), { environment: { clock } })
    await bench.clock.advance(500_000)
    gate.open()
    await settled()
    expect(await now()).toMatchObject({ status: 'completed', crashCount: 0 })
  })
})

describe('a worker cut off from the database', () => {
  it('stops its run by itself before another one may own it, and gives it back without a crash', async () => {
    const faulty = createFaulty(bench.storage)
    const reasons: unknown[] = []
    const { now, events } = await bench.perform(
      (ctx) =>
        ctx.run('a', ({ signal }) => {
          signal.addEventListener('abort', () => reasons.push(signal.reason))
          return ctx.attempt === 1 && reasons.length === 0 ? forever() : 'done'
        }),
      { storage: faulty.storage },
    )
    faulty.fail()
    await bench.clock.advance(24_000)
    expect(reasons).toEqual([])
    await bench.clock.advance(6500)
    expect(reasons).toMatchObject([{ code: 'LEASE_LOST' }])
    faulty.heal()
    await bench.clock.advance(15_000)
    expect(await now()).toMatchObject({ status: 'completed', output: 'done', crashCount: 0, attempt: 1 })
    expect(events.some(({ type }) => type === 'run:fail')).toBe(false)
  })

  it('stops its run also when the database does not even refuse', async () => {
    const mortal = createMortal(bench.storage)
    const reasons: unknown[] = []
    await bench.perform(
      (ctx) => {
        ctx.signal.addEventListener('abort', () => reasons.push(ctx.signal.reason))
        return forever()
      },
      { storage: mortal.storage },
    )
    mortal.kill()
    await bench.clock.advance(30_500)
    expect(reasons).toMatchObject([{ code: 'LEASE_LOST' }])
  })

  it('waits one heartbeat after it is back before it recovers others', async () => {
    const { now } = await lostRun()
    const faulty = createFaulty(bench.storage)
    await healthy(() => 'rescued', { storage: faulty.storage })
    await bench.clock.advance(10_000)
    faulty.fail()
    await bench.clock.advance(30_000)
    faulty.heal()
    await bench.clock.advance(3000)
    expect(await now()).toMatchObject({ status: 'running', ownerId: 'lost' })
    await bench.clock.advance(6000)
    expect(await now()).toMatchObject({ status: 'completed' })
  })
})

describe('a run that kills its workers', () => {
  /** Lets one worker after the other take the run and die; resolves with the last state. */
  async function crash(
    times: number,
    execute: JobBody = forever,
    { crashed, ...options }: { maxCrashes?: number; crashed?: boolean } = {},
  ) {
    const rescuer = bench.open(options)
    // Of a job that it does not know it could not say what a failure calls.
    rescuer.defineJob({ name: 'job', input: anything }, execute)
    const events = recordEvents(rescuer)
    let bodies = 0
    const lives: string[] = []
    let runId = ''
    let words = ''
    for (let n = 1; n <= times; n++) {
      const mortal = createMortal(bench.storage)
      const worker = bench.open({ storage: mortal.storage, workerId: `worker-${n}`, ...options })
      const job = worker.defineJob({ name: 'job', input: anything }, (ctx) => {
        bodies += 1
        return execute(ctx)
      })
      if (n === 1) runId = (await job.trigger({})).id
      worker.start()
      await settled()
      await settled()
      mortal.kill()
      await rescuer.recover({ workerId: `worker-${n}`, crashed })
      lives.push(found(await rescuer.getRun(runId)).availableAt ?? 'never')
      words = await rescuer.explain(runId)
      await bench.clock.advance(60_000)
    }
    return { run: found(await rescuer.getRun(runId)), bodies, events, lives, words, rescuer }
  }

  it('fails after five in a row, for a reason that can be told apart', async () => {
    const { run, bodies, events } = await crash(6)
    expect(run).toMatchObject({ status: 'failed', attempt: 1, errorDetail: { code: 'crash_limit' } })
    expect(bodies).toBe(5)
    expect(events.at(-1)).toMatchObject({ type: 'run:fail', runId: run.id, jobName: 'job', failedStepName: null })
    expect(events.filter(({ type }) => type === 'run:recover')).toHaveLength(4)
  })

  it('waits from the second on, and says for how long', async () => {
    const { lives, words } = await crash(2)
    expect(words).toMatch(new RegExp(`lost its worker 2 times in a row .*, and goes on at ${lives[1]}, in [12] s\\.$`))
  })

  it('goes on for ever, and at once, when they left on purpose', async () => {
    const { run, bodies, events, lives } = await crash(12, forever, { crashed: false })
    expect(run).toMatchObject({ status: 'pending', crashCount: 0, availableAt: run.createdAt })
    expect(bodies).toBe(12)
    expect(new Set(lives)).toEqual(new Set([run.createdAt]))
    expect(events).toHaveLength(12)
    for (const event of events) expect(event).toMatchObject({ type: 'run:recover', crashed: false })
  })

  it('fails after as many as the option says', async () => {
    const { run, bodies } = await crash(3, forever, { maxCrashes: 2 })
    expect(run).toMatchObject({ status: 'failed', errorDetail: { code: 'crash_limit' } })
    expect(bodies).toBe(2)
  })

  it('goes on for ever when it gets a step further each time', async () => {
    let step = 0
    const { run, bodies } = await crash(8, async (ctx) => {
      step += 1
      for (let n = 1; n <= step; n++) await ctx.run(`step-${n}`, () => n)
      return forever()
    })
    expect(bodies).toBe(8)
    expect(run).toMatchObject({ status: 'pending', crashCount: 1, currentStepIndex: 8 })
  })

  it('goes on for ever when it saves another checkpoint each time', async () => {
    const { run, bodies } = await crash(8, (ctx) =>
      ctx.run('pages', async ({ checkpoint, save }) => {
        await save(((checkpoint as number | undefined) ?? 0) + 1)
        return forever()
      }),
    )
    expect(bodies).toBe(8)
    expect(run).toMatchObject({ status: 'pending', crashCount: 1 })
  })

  it.each<{ what: string; execute: JobBody }>([
    {
      what: 'saves the same checkpoint again',
      execute: (ctx) =>
        ctx.run('pages', async ({ save }) => {
          await save('page 1')
          return forever()
        }),
    },
    {
      what: 'starts a stream again',
      execute: (ctx) =>
        ctx.stream('words', async (emit) => {
          await emit('once upon a time')
          return forever()
        }),
    },
    {
      what: 'shows progress and writes a log',
      execute: (ctx) => {
        ctx.progress(1)
        ctx.log.info('so far')
        return forever()
      },
    },
  ])('fails when all it does is that it $what', async ({ execute }) => {
    const { run } = await crash(6, execute)
    expect(run).toMatchObject({ status: 'failed', errorDetail: { code: 'crash_limit' } })
  })

  it('waits from the second crash on, and longer each time', async () => {
    const { lives, run } = await crash(4)
    const base = Date.parse(run.createdAt)
    const [first, ...later] = lives.map((life, n) => Date.parse(life) - base - n * 60_000)
    expect(first).toBe(0)
    for (const [index, waitMs] of later.entries()) {
      expect(waitMs).toBeGreaterThanOrEqual(1000 * 2 ** index)
      expect(waitMs).toBeLessThanOrEqual(2000 * 2 ** index)
    }
  })

  it('starts with a clean count after a retry by hand', async () => {
    const { run, rescuer } = await crash(5)
    expect(run.status).toBe('failed')
    expect(await rescuer.retry(run.id)).toMatchObject({ status: 'pending', crashCount: 0, attempt: 2 })
  })
})

describe('suspects', () => {
  /** Runs that have lost two workers, due at once. */
  async function suspects(count: number): Promise<readonly string[]> {
    const job = bench.open().defineJob({ name: 'job', input: anything }, () => {})
    const runs = await job.batchTrigger(Array.from({ length: count }, (_, payload) => ({ payload })))
    for (const workerId of ['first', 'second']) {
      const mortal = createMortal(bench.storage)
      const lost = bench.open({ storage: mortal.storage, workerId, concurrency: count })
      lost.defineJob({ name: 'job', input: anything }, forever)
      lost.start()
      await settled()
      mortal.kill()
      await bench.open().recover({ workerId })
    }
    await bench.clock.advance(2000)
    return runs.map(({ id }) => id)
  }

  it('are held one at a time by a worker, which takes other runs beside it', async () => {
    const [first, second] = await suspects(3)
    const begun: string[] = []
    const durably = bench.open({ concurrency: 10 })
    const job = durably.defineJob({ name: 'job', input: anything }, (ctx) => {
      begun.push(ctx.runId)
      return forever()
    })
    const other = await job.trigger({})
    durably.start()
    await bench.clock.advance(30_000)
    expect(begun).toHaveLength(2)
    expect(begun).toContain(other.id)
    const rest = bench.open()
    rest.defineJob({ name: 'job', input: anything }, (ctx) => {
      begun.push(ctx.runId)
      return forever()
    })
    rest.start()
    await settled()
    expect(begun).toHaveLength(3)
    expect(begun.some((id) => id === first || id === second)).toBe(true)
  })

  it('are followed by the next one as soon as they have got further, and when they have ended', async () => {
    await suspects(3)
    const gates = [createGate(), createGate(), createGate()]
    let begun = 0
    const durably = bench.open({ concurrency: 10, pollingInterval: 600_000 })
    durably.defineJob({ name: 'job', input: anything }, async (ctx) => {
      const gate = found(gates[begun])
      begun += 1
      if (begun === 2) return gate.opened
      await ctx.run('step', () => gate.opened)
      return forever()
    })
    durably.start()
    await settled()
    expect(begun).toBe(1)
    gates[0]?.open()
    await settled()
    expect(begun).toBe(2)
    gates[1]?.open()
    await settled()
    expect(begun).toBe(3)
  })

  it('are all run by a worker that runs what is due', async () => {
    await suspects(5)
    const durably = bench.open({ concurrency: 10 })
    durably.defineJob({ name: 'job', input: anything }, () => 'done')
    expect(await durably.runUntilIdle()).toMatchObject({ ran: 5, nextWakeAt: null })
  })
})

describe('many workers on one storage', () => {
  it('run each run once', async () => {
    const counts = new Map<string, number>()
    const workers: Durably[] = []
    for (let n = 0; n < 4; n++) {
      const durably = bench.open({ concurrency: 3 })
      durably.defineJob({ name: 'job', input: anything }, async (ctx) => {
        counts.set(ctx.runId, (counts.get(ctx.runId) ?? 0) + 1)
        await ctx.run('a', () => Promise.resolve())
        await ctx.run('b', () => Promise.resolve())
      })
      workers.push(durably)
    }
    const trigger = bench.open().defineJob({ name: 'job', input: anything }, () => {})
    await trigger.batchTrigger(Array.from({ length: 100 }, (_, payload) => ({ payload })))
    for (const worker of workers) worker.start()
    await bench.clock.advance(3000)
    expect(await found(workers[0]).counts()).toMatchObject({ completed: 100, failed: 0 })
    expect([...counts.values()]).toEqual(Array.from({ length: 100 }, () => 1))
  })
})
