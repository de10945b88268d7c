import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type JobContext, SchemaTooNewError, type Storage } from '../index'
import {
  anything,
  type Bench,
  createBench,
  createFaulty,
  createGate,
  createMortal,
  found,
  type Operation,
  recordEvents,
  wrapStorage,
} from '../testing/test-bench'
import { settled } from '../testing/fake-clock'

let bench: Bench

beforeEach(() => {
  bench = createBench()
})

afterEach(() => bench.close())

const forever = () => new Promise<never>(() => {})

/** The storage with calls that never answer, as over a connection that is half open. */
function silenced(storage: Storage): { readonly storage: Storage; silence(operation: Operation): void } {
  const silent = new Set<Operation>()
  return {
    storage: wrapStorage(storage, (operation, call) => (silent.delete(operation) ? forever() : call())),
    silence: (operation) => void silent.add(operation),
  }
}

describe('a call that never answers', () => {
  it('of a renewal is followed by others, and the run goes on', async () => {
    const half = silenced(bench.storage)
    const { now, events } = await bench.perform((ctx) => ctx.run('long', forever), { storage: half.storage })
    half.silence('renew')
    await bench.clock.advance(120_000)
    expect(await now()).toMatchObject({ status: 'running', crashCount: 0 })
    expect(events.some(({ type }) => type === 'worker:lease-lost')).toBe(false)
  })

  it.each(['claim', 'commit', 'recover', 'nextDue', 'getSteps'] as const)(
    'of %s does not stop the worker',
    async (operation) => {
      const mortal = createMortal(bench.storage)
      const lost = await bench.perform(forever, { storage: mortal.storage, workerId: 'lost' })
      mortal.kill()
      const half = silenced(bench.storage)
      const durably = bench.open({ storage: half.storage })
      const job = durably.defineJob({ name: 'job', input: anything }, (ctx) => ctx.run('step', () => 'done'))
      half.silence(operation)
      durably.start()
      await settled()
      const { id } = await job.trigger({})
      await bench.clock.advance(60_000)
      expect(await job.getRun(id)).toMatchObject({ status: 'completed' })
      expect(await lost.now()).toMatchObject({ status: 'completed' })
    },
  )
})

describe('a machine that was asleep', () => {
  it('takes nothing from its own workers, although the database says that their leases have run out', async () => {
    const workers = ['one', 'two'].map((workerId) => bench.open({ workerId }))
    const jobs = workers.map((durably) => durably.defineJob({ name: 'job', input: anything }, forever))
    for (const durably of workers) durably.start()
    await settled()
    const runs = await Promise.all(jobs.map((job) => job.trigger({})))
    await settled()
    // The monotonic clock of many systems stands still meanwhile.
    bench.clock.setWall(3_600_000)
    await bench.clock.advance(10_000)
    for (const { id } of runs) {
      expect(await bench.storage.getRun(id)).toMatchObject({ status: 'running', crashCount: 0, leaseEpoch: 1 })
    }
  })
})

describe('a stop after a claim whose answer was lost', () => {
  it('leaves no run behind that nobody works on', async () => {
    const faulty = createFaulty(bench.storage)
    const durably = bench.open({ storage: faulty.storage })
    const job = durably.defineJob({ name: 'job', input: anything }, () => 'done')
    const { id } = await job.trigger({})
    faulty.loseAnswer('claim')
    durably.start()
    await settled()
    expect(await job.getRun(id)).toMatchObject({ status: 'running' })
    await durably.stop()
    expect(await job.getRun(id)).toMatchObject({ status: 'pending', ownerId: null, crashCount: 0 })
  })
})

describe('a start during the last seconds of runUntilIdle', () => {
  it('leaves nothing going on after stop', async () => {
    const durably = bench.open()
    const job = durably.defineJob({ name: 'job', input: anything }, (ctx) => ctx.run('deaf', forever))
    await job.trigger({})
    const draining = durably.runUntilIdle({ budgetMs: 100 })
    await bench.clock.advance(200)
    durably.start()
    await bench.clock.advance(6000)
    await draining
    const stopping = durably.stop({ timeout: 0 })
    await bench.clock.advance(6000)
    await stopping
    expect(bench.clock.pendingTimers()).toBe(0)
  })
})

describe('a schema that became too new under a running worker', () => {
  it('keeps it from claiming until it fits again', async () => {
    let tooNew = false
    const checkSchema = async () => {
      if (tooNew) throw new SchemaTooNewError(9, 1)
    }
    const durably = bench.open({ storage: { ...bench.storage, checkSchema } })
    const job = durably.defineJob({ name: 'job', input: anything }, () => 'done')
    const errors = recordEvents(durably, ['worker:error'])
    durably.start()
    await settled()
    tooNew = true
    await bench.clock.advance(60_000)
    const { id } = await job.trigger({})
    await bench.clock.advance(5000)
    expect(await job.getRun(id)).toMatchObject({ status: 'pending' })
    expect(errors[0]).toMatchObject({ code: 'SCHEMA_TOO_NEW' })
    tooNew = false
    await bench.clock.advance(2000)
    expect(await job.getRun(id)).toMatchObject({ status: 'completed' })
  })
})

describe('a run that a body triggers', () => {
  it('knows nothing of that body: its own log lines have no step', async () => {
    const durably = bench.open({ concurrency: 2 })
    const lines = recordEvents(durably, ['log:write'])
    const childEnded = createGate()
    durably.on('run:complete', ({ jobName }) => (jobName === 'child' ? childEnded.open() : undefined))
    const child = durably.defineJob({ name: 'child', input: anything }, async (ctx) => {
      ctx.log.info('from the child')
      await ctx.run('own', (step) => step.log.info('from its step'))
    })
    const parent = durably.defineJob({ name: 'parent', input: anything }, (ctx) =>
      ctx.run('a', async () => {
        await child.trigger({})
        await childEnded.opened
        ctx.log.info('from the parent')
      }),
    )
    durably.start()
    const { id } = await parent.trigger({})
    await bench.clock.advance(2000)
    expect(await parent.getRun(id)).toMatchObject({ status: 'completed' })
    expect(lines.map(({ message, stepName }) => [message, stepName])).toEqual([
      ['from the child', null],
      ['from its step', 'own'],
      ['from the parent', 'a'],
    ])
  })
})

describe('a step that failed in several attempts', () => {
  it('gives its newest failure again, wherever it stood before', async () => {
    let attempt = 0
    let bodies = 0
    const execute = async (ctx: JobContext) => {
      if (ctx.attempt === 1) for (const name of ['x', 'y']) await ctx.run(name, () => name)
      await ctx
        .run('b', () => {
          bodies += 1
          throw new Error(`no ${ctx.attempt}`)
        })
        .catch((error: Error) => {
          if (ctx.attempt === 1) throw error
          attempt = ctx.attempt
        })
      return ctx.run('long', forever)
    }
    const first = await bench.perform(execute)
    await first.durably.stop()
    expect(await first.now()).toMatchObject({ status: 'failed', error: 'no 1' })
    const mortal = createMortal(bench.storage)
    const lost = bench.open({ storage: mortal.storage, workerId: 'lost' })
    lost.defineJob({ name: 'job', input: anything }, execute)
    await lost.retry(first.run.id)
    lost.start()
    await settled()
    expect([attempt, bodies]).toEqual([2, 2])
    mortal.kill()
    const next = bench.open()
    next.defineJob({ name: 'job', input: anything }, execute)
    next.start()
    await next.recover({ workerId: 'lost' })
    await settled()
    expect(bodies).toBe(2)
  })
})

describe('a once step under a plugin that runs the job again', () => {
  it('is started once', async () => {
    const repeat = {
      name: 'repeat',
      async aroundRun(_run: unknown, next: () => Promise<unknown>) {
        return next().catch(next).catch(next)
      },
    }
    let charges = 0
    const durably = bench.open()
    durably.use(repeat)
    const job = durably.defineJob({ name: 'job', input: anything }, (ctx) =>
      ctx.run('charge', { once: true }, () => {
        charges += 1
        throw new Error('declined')
      }),
    )
    durably.start()
    const { id } = await job.trigger({})
    await settled()
    expect(await job.getRun(id)).toMatchObject({ status: 'failed', error: 'declined' })
    expect(charges).toBe(1)
  })
})

describe('names that a database would change', () => {
  it.each(['half an emoji \ud83d', 'NUL \0', 'x'.repeat(513)])('are refused for steps', async (name) => {
    const { run } = await bench.perform((ctx) => ctx.run(name, () => 1))
    expect(run).toMatchObject({ status: 'failed', errorDetail: { code: 'INVALID_OPTION' } })
  })
})

describe('an output schema that never answers', () => {
  it('does not keep the run from being cancelled', async () => {
    const silent = { '~standard': { version: 1, vendor: 'test', validate: forever } } as const
    const durably = bench.open()
    const job = durably.defineJob({ name: 'job', input: anything, output: silent }, () => 'done')
    durably.start()
    const { id } = await job.trigger({})
    await settled()
    await durably.cancel(id)
    await bench.clock.advance(6000)
    expect(await job.getRun(id)).toMatchObject({ status: 'cancelled' })
  })
})

describe('history', () => {
  it('numbers the start of a run, and keeps the last of many progress events', async () => {
    const durably = bench.open()
    durably.use({ name: 'history', records: { events: true } })
    const starts = recordEvents(durably, ['run:start'])
    const job = durably.defineJob({ name: 'job', input: anything }, (ctx) => {
      for (let n = 1; n <= 1000; n++) ctx.progress(n, 1000)
    })
    durably.start()
    const { id } = await job.trigger({})
    await settled()
    const stored = await durably.getEvents(id)
    expect(stored.map(({ type, seq }) => [type, seq])).toEqual([
      ['run:trigger', 1],
      ['run:start', 2],
      ['run:progress', 3],
      ['run:complete', 4],
    ])
    expect(found(stored[2])).toMatchObject({ progress: { current: 1000, total: 1000 } })
    expect(starts).toMatchObject([{ seq: 2 }])
  })
})

describe('a listener', () => {
  it('can be registered twice, and each time is taken away alone', async () => {
    const durably = bench.open()
    let heard = 0
    const listen = () => {
      heard += 1
    }
    const off = durably.on('run:trigger', listen)
    durably.on('run:trigger', listen)
    off()
    const job = durably.defineJob({ name: 'job', input: anything }, () => {})
    await job.trigger({})
    expect(heard).toBe(1)
  })
})

describe('health', () => {
  it('forgets trouble that is over also while all slots are busy', async () => {
    const faulty = createFaulty(bench.storage)
    const gate = createGate()
    const { durably } = await bench.perform(() => gate.opened, { storage: faulty.storage })
    faulty.fail('renew')
    await bench.clock.advance(6000)
    expect(durably.health().trouble).toMatchObject({ during: 'renew' })
    faulty.heal()
    await bench.clock.advance(6000)
    expect(durably.health().trouble).toBeNull()
    gate.open()
  })
})

describe('stop, start and stop again', () => {
  it('obeys the last word', async () => {
    const durably = bench.open()
    durably.start()
    await settled()
    const first = durably.stop()
    durably.start()
    await durably.stop()
    await first
    expect(durably.health().worker).toBe('stopped')
    expect(bench.clock.pendingTimers()).toBe(0)
  })

  it.each([{}, { timeout: 1000 }])('starts again when that was the last word, after stop(%j)', async (options) => {
    const durably = bench.open()
    durably.start()
    await settled()
    const stopping = durably.stop(options)
    durably.start()
    await stopping
    await settled()
    expect(durably.health().worker).toBe('running')
    // Its rounds go on, too.
    expect(bench.clock.pendingTimers()).toBeGreaterThan(2)
  })
})

describe('runUntilIdle beside a started worker', () => {
  it('returns when its budget is over, and ends nothing that the worker has begun', async () => {
    const gate = createGate()
    const { durably, now } = await bench.perform((ctx) => ctx.run('long', () => gate.opened))
    const drained = durably.runUntilIdle({ budgetMs: 100 })
    await bench.clock.advance(200)
    expect(await drained).toMatchObject({ ran: 0 })
    gate.open()
    await settled()
    expect(await now()).toMatchObject({ status: 'completed', attempt: 1 })
  })
})

describe('a body that kept the processor for longer than the lease', () => {
  it('loses nothing when nobody took its run', async () => {
    const gate = createGate()
    const { now, events } = await bench.perform((ctx) =>
      ctx.run('zip', async ({ signal }) => {
        await gate.opened
        signal.throwIfAborted()
        return 'zipped'
      }),
    )
    // Timers that were due long ago fire one after the other, as after a blocked event loop.
    await bench.clock.stall(40_000)
    gate.open()
    await bench.clock.advance(1000)
    expect(await now()).toMatchObject({ status: 'completed', output: 'zipped', crashCount: 0 })
    expect(events.some(({ type }) => type === 'run:release')).toBe(false)
  })
})

describe('a tab that thaws', () => {
  it('renews what nobody took, however often it is told to look meanwhile', async () => {
    const answer = createGate()
    let isSlow = false
    const storage = wrapStorage(bench.storage, async (operation, call) => {
      const given = await call()
      if (operation === 'renew' && isSlow) await answer.opened
      return given
    })
    const signals: AbortSignal[] = []
    const body = createGate()
    const { durably, now, events } = await bench.perform(
      (ctx) =>
        ctx.run('long', ({ signal }) => {
          signals.push(signal)
          return body.opened
        }),
      { storage, staleThreshold: 120_000 },
    )
    isSlow = true
    await bench.clock.stall(600_000)
    durably.wake()
    durably.wake()
    await settled()
    durably.wake()
    await settled()
    answer.open()
    await settled()
    expect(signals.map(({ aborted }) => aborted)).toEqual([false])
    body.open()
    await settled()
    expect(await now()).toMatchObject({ status: 'completed' })
    expect(events.some(({ type }) => type === 'run:release')).toBe(false)
  })
})

describe('a job that logs without end', () => {
  it('is many commits, none of them large', async () => {
    const sizes: number[] = []
    const storage: Storage = {
      ...bench.storage,
      commit(list) {
        for (const { logs, steps, events } of list) sizes.push(logs.length + steps.length + events.length)
        return bench.storage.commit(list)
      },
    }
    const durably = bench.open({ storage })
    durably.use({ name: 'history', records: { logs: true, events: true } })
    const job = durably.defineJob({ name: 'job', input: anything }, async (ctx) => {
      for (let n = 0; n < 2500; n++) ctx.log.info(`line ${n}`)
      await Promise.all(Array.from({ length: 1200 }, (_, n) => ctx.run(`step ${n}`, () => n)))
    })
    durably.start()
    const { id } = await job.trigger({})
    await bench.clock.advance(1000)
    expect(await job.getRun(id)).toMatchObject({ status: 'completed', currentStepIndex: 1200 })
    expect(Math.max(...sizes)).toBeLessThanOrEqual(2000)
    expect((await durably.getLogs(id)).map(({ message }) => message)).toEqual(
      Array.from({ length: 2500 }, (_, n) => `line ${n}`),
    )
    const stored = await durably.getEvents(id)
    expect(stored.map(({ seq }) => seq)).toEqual(stored.map((_, index) => index + 1))
    expect(stored.filter(({ type }) => type === 'step:complete')).toHaveLength(1200)
  })
})

describe('a plugin that cannot be installed', () => {
  it('leaves nothing behind', async () => {
    const durably = bench.open()
    let around = 0
    const broken = {
      name: 'broken',
      aroundRun(_run: unknown, next: () => Promise<unknown>) {
        around += 1
        return next()
      },
      install() {
        throw new Error('no')
      },
    }
    expect(() => durably.use(broken)).toThrow('no')
    const job = durably.defineJob({ name: 'job', input: anything }, () => 1)
    await job.trigger({})
    await durably.runUntilIdle()
    expect(around).toBe(0)
    const typo = { name: 'typo', aroundRun: 5 } as never
    expect(() => durably.use(typo)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }))
  })
})

describe('a body that waits for its own end', () => {
  it.each([
    ['stop()', 'stop'],
    ['runUntilIdle()', 'runUntilIdle'],
  ] as const)('by %s is told so', async (_call, method) => {
    const durably = bench.open()
    const job = durably.defineJob({ name: 'job', input: anything }, (ctx) =>
      ctx.run('admin', async () => void (await durably[method]())),
    )
    durably.start()
    const { id } = await job.trigger({})
    await settled()
    expect(await job.getRun(id)).toMatchObject({ status: 'failed', errorDetail: { code: 'INVALID_OPTION' } })
  })
})

describe('a body that stops its worker and does not wait', () => {
  it('is told through onError, and the process lives', async () => {
    const durably = bench.open()
    const heard: unknown[] = []
    durably.onError((error) => heard.push(error))
    const job = durably.defineJob({ name: 'job', input: anything }, (ctx) =>
      ctx.run('admin', () => void durably.stop()),
    )
    durably.start()
    const { id } = await job.trigger({})
    await settled()
    expect(await job.getRun(id)).toMatchObject({ status: 'completed' })
    expect(heard).toMatchObject([{ code: 'INVALID_OPTION' }])
  })
})

describe('callers without types', () => {
  const bad = (value: unknown) => value as never

  it.each([
    ['an age in words', { olderThan: '30d' }],
    ['no age', { olderThan: null }],
    ['an option misspelt', { olderThen: 5 }],
    ['a status that is no end', { status: 'running' }],
  ])('do not purge everything by %s', async (_what, options) => {
    await expect(bench.open().purge(bad(options))).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })

  it.each([
    ['a label without a value', { labels: { user: undefined } }],
    ['labels that are none', { labels: null }],
    ['a delay in words', { delay: '5' }],
    ['an instant that is null', { runAt: null }],
    ['a flag in words', { holdKeyWhileWaiting: 'no' }],
    ['no options', null],
  ])('get one clear error for %s', async (_what, options) => {
    const job = bench.open().defineJob({ name: 'job', input: anything }, () => {})
    await expect(job.trigger({}, bad(options))).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    expect(await job.getRuns()).toEqual([])
  })

  it.each([undefined, null, 5, {}, []])('find no run under %s', async (id) => {
    const durably = bench.open()
    expect(await durably.getRun(bad(id))).toBeNull()
    expect(await durably.getSteps(bad(id))).toEqual([])
    expect(await durably.getLogs(bad(id))).toEqual([])
    expect(await durably.getEvents(bad(id))).toEqual([])
    await expect(durably.cancel(bad(id))).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  it('are told of names that do not exist', async () => {
    const durably = bench.open()
    const invalid = expect.objectContaining({ code: 'INVALID_OPTION' })
    expect(() => durably.on(bad('run:compelte'), () => {})).toThrow(invalid)
    expect(() => durably.on('run:start', bad(undefined))).toThrow(invalid)
    expect(() => durably.register(bad({ missing: undefined }))).toThrow(invalid)
    await expect(durably.recover({ workerId: bad(undefined) })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })
})

describe('many bodies that listen to their signal', () => {
  it('are not taken for a leak', async () => {
    const warnings: unknown[] = []
    const { process } = globalThis as unknown as {
      process: { on(name: 'warning', fn: (warning: unknown) => void): void; off(name: 'warning', fn: unknown): void }
    }
    const note = (warning: unknown) => void warnings.push(warning)
    process.on('warning', note)
    await bench.perform((ctx) =>
      Promise.all(
        Array.from({ length: 20 }, (_, n) =>
          ctx.run(`step ${n}`, ({ signal }) => signal.addEventListener('abort', () => {})),
        ),
      ),
    )
    await settled()
    process.off('warning', note)
    expect(warnings).toEqual([])
  })
})
