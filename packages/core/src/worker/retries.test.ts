import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  defineJob,
  InvalidOptionError,
  isEnded,
  type JobContext,
  PermanentError,
  RetryAfterError,
  type RetryPolicy,
  SerializationError,
} from '../index'
import { retryDelayMs } from '../job/retry'
import { settled } from '../testing/fake-clock'
import { anything, type Bench, createBench, createGate, createMortal, found, recordEvents } from '../testing/test-bench'

let bench: Bench

beforeEach(() => {
  bench = createBench()
})

afterEach(() => bench.close())

const twice: RetryPolicy = { maxAttempts: 2, delay: 1000 }

/** A job that keeps what it was given to do, with the policy of its run. */
async function perform(execute: (ctx: JobContext) => unknown, retry?: RetryPolicy) {
  const durably = bench.open()
  const events = recordEvents(durably)
  const job = durably.register({ job: defineJob({ name: 'job', input: anything, retry }, execute) }).job
  durably.start()
  await settled()
  const { id } = await job.trigger({})
  await settled()
  await bench.clock.advance(0)
  return { durably, id, events, now: async () => found(await durably.getRun(id)) }
}

describe('when a failure is tried again', () => {
  const failed = { attempt: 1, error: new Error('boom'), random: () => 0.5 }

  it.each<[string, RetryPolicy, number, number | null]>([
    ['after a fixed time', { maxAttempts: 3, delay: 700 }, 2, 700],
    ['not after the last attempt', { maxAttempts: 3, delay: 700 }, 3, null],
    ['between nothing and a second at first', { maxAttempts: 9 }, 1, 500],
    ['between nothing and four seconds then', { maxAttempts: 9 }, 3, 2000],
    ['never later than a minute', { maxAttempts: 99 }, 50, 30_000],
    ['growing as it was asked to', { maxAttempts: 9, delay: { from: 10, factor: 3, upTo: 50 } }, 2, 15],
    ['up to its own limit', { maxAttempts: 9, delay: { from: 10, factor: 3, upTo: 50 } }, 4, 25],
    ['when a function says so', { maxAttempts: 9, delay: (attempt) => attempt * 11 }, 4, 44],
    ['not when a function says so', { maxAttempts: 9, delay: () => null }, 1, null],
  ])('%s', (_, policy, ...[attempt, expected]) => {
    expect(retryDelayMs({ ...failed, policy, attempt })).toBe(expected)
  })

  it('is for the error to say', () => {
    const policy = { maxAttempts: 3, delay: 700 }
    expect(retryDelayMs({ ...failed, policy, error: new RetryAfterError('busy', 9000) })).toBe(9000)
    expect(retryDelayMs({ ...failed, policy, attempt: 3, error: new RetryAfterError('busy', 9000) })).toBe(null)
    expect(retryDelayMs({ ...failed, policy, error: new PermanentError('gone') })).toBe(null)
    expect(retryDelayMs({ ...failed, policy: null })).toBe(null)
  })

  it.each([
    { maxAttempts: 0 },
    { maxAttempts: 1.5 },
    { maxAttempts: 2, delay: -1 },
    { maxAttempts: 2, delay: Number.NaN },
    { maxAttempts: 2, delay: { from: -1 } },
    { maxAttempts: 2, delay: 'soon' },
    { maxAttempts: 2, countCrashes: 'yes' },
    {},
  ])('is refused where it makes no sense: %o', (retry) => {
    const options = { name: 'job', input: anything, retry: retry as RetryPolicy }
    expect(() => defineJob(options, () => {})).toThrow(InvalidOptionError)
  })
})

describe('a run that is tried again', () => {
  it('is not, without a policy', async () => {
    const { now } = await perform(() => Promise.reject(new Error('boom')))
    await bench.clock.advance(3_600_000)
    expect(await now()).toMatchObject({ status: 'failed', attempt: 1 })
  })

  it('waits in the database, keeps its steps, and runs again when it is due', async () => {
    const bodies: string[] = []
    const { now, events } = await perform(async (ctx) => {
      await ctx.run('once', () => bodies.push(`once ${ctx.attempt}`))
      await ctx.run('again', () => {
        bodies.push(`again ${ctx.attempt}`)
        if (ctx.attempt === 1) throw new Error('boom')
      })
      return ctx.attempt
    }, twice)
    expect(await now()).toMatchObject({ status: 'pending', attempt: 2, error: 'boom', ownerId: null })
    await bench.clock.advance(999)
    expect(bodies).toEqual(['once 1', 'again 1'])
    await bench.clock.advance(1)
    expect(bodies).toEqual(['once 1', 'again 1', 'again 2'])
    expect(await now()).toMatchObject({ status: 'completed', output: 2, error: null })
    expect(events.filter(({ type }) => type === 'run:retry')).toEqual([
      expect.objectContaining({ byHand: false, error: 'boom', delayMs: 1000 }),
    ])
  })

  it('fails after the last attempt, and begins to count anew by hand', async () => {
    let starts = 0
    const { durably, id, now } = await perform(() => {
      starts += 1
      throw new Error(`boom ${starts}`)
    }, twice)
    await bench.clock.advance(1000)
    expect(await now()).toMatchObject({ status: 'failed', attempt: 2, error: 'boom 2' })
    expect(await durably.retry(id)).toMatchObject({ attempt: 3, attemptBase: 2 })
    await bench.clock.advance(1000)
    expect(await now()).toMatchObject({ status: 'failed', attempt: 4, attemptBase: 2, error: 'boom 4' })
  })

  it.each([
    ['PermanentError', () => new PermanentError('no')],
    ['SerializationError', () => new SerializationError('x', { path: '', reason: 'no' })],
  ])('never after a %s', async (_, createError) => {
    const { now } = await perform((ctx) => ctx.run('step', () => Promise.reject(createError())), twice)
    expect(await now()).toMatchObject({ status: 'failed', attempt: 1 })
  })

  it('fails with the error of a policy that throws', async () => {
    const delay = () => {
      throw new Error('bad policy')
    }
    const { now } = await perform(() => Promise.reject(new Error('boom')), { maxAttempts: 3, delay })
    expect(await now()).toMatchObject({ status: 'failed', error: 'bad policy' })
  })

  it('fails when its policy is async, whatever that comes to', async () => {
    const delay = (() => Promise.reject(new Error('too late'))) as unknown as () => number
    const { now } = await perform(() => Promise.reject(new Error('boom')), { maxAttempts: 3, delay })
    expect(await now()).toMatchObject({ status: 'failed', error: expect.stringContaining('retry.delay()') })
  })

  it('is cancelled while it waits', async () => {
    const { durably, id, now } = await perform(() => Promise.reject(new Error('boom')), twice)
    await durably.cancel(id)
    await bench.clock.advance(5000)
    expect(await now()).toMatchObject({ status: 'cancelled', attempt: 2 })
  })
})

describe('a run whose workers are lost', () => {
  type Act = 'crash' | 'fail' | 'step and crash' | 'done'

  const counted: RetryPolicy = { maxAttempts: 3, delay: 1000, countCrashes: true }

  /** Worker after worker takes the one run and does the next act with it, until it has ended or nothing comes of it. */
  async function live(acts: readonly Act[], retry: RetryPolicy, maxCrashes = 99) {
    const observer = bench.open()
    const events = recordEvents(observer)
    const starts: { attempt: number; tries: number }[] = []
    let wraps = 0
    const { id } = await observer.defineJob({ name: 'job', input: anything }, () => {}).trigger({})
    async function oneLife(n: number): Promise<void> {
      const mortal = createMortal(bench.storage)
      const worker = bench.open({ storage: mortal.storage, workerId: `worker-${n}`, maxCrashes })
      worker.use({
        name: 'count',
        aroundRun(_run, next) {
          wraps += 1
          return next()
        },
      })
      worker.on('run:fail', (event) => events.push(event))
      worker.defineJob({ name: 'job', input: anything, retry }, async ({ run, attempt, tries }) => {
        starts.push({ attempt, tries })
        const act = acts[starts.length - 1] ?? 'done'
        if (act === 'fail') throw new Error(`boom ${starts.length}`)
        if (act === 'step and crash') await run(`step ${starts.length}`, () => 'recorded')
        return act === 'done' ? act : new Promise(() => {})
      })
      worker.start()
      await settled()
      await settled()
      mortal.kill()
      await bench.open({ maxCrashes }).recover({ workerId: `worker-${n}` })
      await bench.clock.advance(10_000)
    }
    async function live() {
      let run = found(await observer.getRun(id))
      for (let n = 1; n <= 8 && !isEnded(run.status); n++) {
        await oneLife(n)
        run = found(await observer.getRun(id))
      }
      return run
    }
    return { run: await live(), events, starts, wraps: () => wraps, live, retry: () => observer.retry(id) }
  }

  it.each<[string, RetryPolicy, Act[], string | null, number]>([
    ['crashes alone', counted, ['crash', 'crash', 'crash'], 'No try is left', 3],
    ['an error between them', counted, ['crash', 'fail', 'crash'], 'No try is left', 3],
    ['an error first', counted, ['fail', 'crash', 'crash'], 'No try is left', 3],
    ['an error last', counted, ['crash', 'crash', 'fail'], 'boom 3', 3],
    ['errors last', counted, ['crash', 'fail', 'fail'], 'boom 3', 3],
    ['errors alone', counted, ['fail', 'fail', 'fail'], 'boom 3', 3],
    ['a single try', { ...counted, maxAttempts: 1 }, ['crash'], 'No try is left', 1],
    ['enough of them', counted, ['fail', 'crash'], null, 3],
    [
      'not asked to count',
      { ...counted, countCrashes: false },
      ['crash', 'fail', 'crash', 'fail', 'fail'],
      'boom 5',
      5,
    ],
    ['not asked, and crashes alone', twice, ['crash', 'crash', 'crash', 'crash'], null, 5],
  ])('is executed as often as it may be: %s', async (_what, policy, ...[acts, error, executions]) => {
    const { run, starts, wraps } = await live(acts, policy)
    expect(starts).toHaveLength(executions)
    expect(wraps()).toBe(executions)
    expect(starts.map(({ tries }) => tries)).toEqual(starts.map((_, n) => n + 1))
    expect(run).toMatchObject(
      error === null ? { status: 'completed' } : { status: 'failed', error: expect.stringContaining(error) },
    )
  })

  it('fails for a reason that can be told apart', async () => {
    const { run, events } = await live(['fail', 'crash', 'crash'], counted)
    const error = 'The run was begun 3 times, and 2 times its worker was lost. No try is left.'
    expect(run).toMatchObject({ error, errorDetail: { name: 'CrashLimitError', code: 'crash_limit' }, attempt: 2 })
    const failures = events.filter(({ type }) => type === 'run:fail')
    expect(failures).toMatchObject([{ runId: run.id, jobName: 'job', error, failedStepName: null }])
  })

  it('has as many tries again after a retry by hand', async () => {
    const { starts, retry, live: liveOn } = await live(['crash', 'fail', 'crash', 'fail', 'crash', 'crash'], counted)
    expect(await retry()).toMatchObject({ attempt: 3, attemptBase: 2, crashCount: 0 })
    expect(await liveOn()).toMatchObject({ status: 'failed', errorDetail: { code: 'crash_limit' } })
    expect(starts.map(({ tries }) => tries)).toEqual([1, 2, 3, 1, 2, 3])
    expect(starts.map(({ attempt }) => attempt)).toEqual([1, 1, 2, 3, 4, 4])
  })

  it('counts anew from a recorded step', async () => {
    const { run, starts } = await live(['crash', 'crash', 'step and crash', 'crash', 'crash'], counted)
    expect(starts.map(({ tries }) => tries)).toEqual([1, 2, 3, 2, 3])
    expect(run).toMatchObject({ status: 'failed', errorDetail: { code: 'crash_limit' } })
  })

  it('is failed all the same by the limit of the instance', async () => {
    const { run, starts } = await live(['crash', 'crash', 'crash'], { ...counted, maxAttempts: 9 }, 2)
    expect(starts).toHaveLength(2)
    expect(run).toMatchObject({ status: 'failed', error: expect.stringContaining('2 times in a row') })
  })

  it('waits longer for each of its tries', async () => {
    const asked: number[] = []
    const delay = (attempt: number) => {
      asked.push(attempt)
      return 1000
    }
    await live(['crash', 'fail', 'fail'], { maxAttempts: 9, countCrashes: true, delay })
    await live(['crash', 'fail', 'fail'], { maxAttempts: 9, delay })
    expect(asked).toEqual([2, 3, 1, 2])
  })

  it('does not count what was given back', async () => {
    const gate = createGate()
    const tries: number[] = []
    const durably = bench.open()
    const retry = { maxAttempts: 1, countCrashes: true }
    const job = durably.defineJob({ name: 'job', input: anything, retry }, (ctx) => {
      tries.push(ctx.tries)
      return gate.opened
    })
    const { id } = await job.trigger({})
    for (let n = 0; n < 3; n++) {
      durably.start()
      await settled()
      const stopped = durably.stop({ timeout: 0 })
      await bench.clock.advance(10_000)
      await stopped
    }
    gate.open()
    durably.start()
    await settled()
    expect(tries).toEqual([1, 1, 1, 1])
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed' })
  })
})

describe('a step that is tried again', () => {
  const flaky = (starts: number[], failures: number) => async (ctx: JobContext) =>
    ctx.run('flaky', { retry: { maxAttempts: 3, delay: 1000 } }, ({ attempt }) => {
      starts.push(attempt)
      if (attempt <= failures) throw new Error(`boom ${attempt}`)
      return attempt
    })

  it('lets the run wait in the database, held by nobody', async () => {
    const starts: number[] = []
    const { now, durably, id, events } = await perform(flaky(starts, 2))
    expect(await now()).toMatchObject({ status: 'pending', attempt: 1, ownerId: null })
    expect(await durably.explain(id)).toContain('"flaky"')
    expect(await durably.getSteps(id)).toMatchObject([
      { name: 'flaky', status: 'failed', error: 'boom 1' },
      { name: 'flaky', status: 'waiting', error: 'boom 1' },
    ])
    await bench.clock.advance(999)
    expect(starts).toEqual([1])
    await bench.clock.advance(1)
    expect(starts).toEqual([1, 2])
    await bench.clock.advance(1000)
    expect(await now()).toMatchObject({ status: 'completed', output: 3, attempt: 1 })
    expect(events.filter(({ type }) => type === 'step:fail')).toHaveLength(2)
    expect((await durably.getSteps(id)).map(({ status }) => status)).toEqual(['failed', 'failed', 'completed'])
  })

  it('fails after the last attempt with the last error', async () => {
    const starts: number[] = []
    const { now } = await perform(flaky(starts, 9))
    await bench.clock.advance(2000)
    expect(starts).toEqual([1, 2, 3])
    expect(await now()).toMatchObject({ status: 'failed', error: 'boom 3' })
  })

  it('goes on counting in another process', async () => {
    const starts: number[] = []
    const mortal = createMortal(bench.storage)
    const first = bench.open({ storage: mortal.storage })
    const define = { name: 'job', input: anything }
    const job = first.defineJob(define, flaky(starts, 2))
    first.start()
    await settled()
    const { id } = await job.trigger({})
    await settled()
    await bench.clock.advance(0)
    mortal.kill()
    const second = bench.open()
    second.defineJob(define, flaky(starts, 2))
    second.start()
    await bench.clock.advance(4000)
    expect(starts).toEqual([1, 2, 3])
    expect(await second.getRun(id)).toMatchObject({ status: 'completed' })
  })

  it('goes on in another process after the try that saved how far it was', async () => {
    const starts: unknown[] = []
    const mortal = createMortal(bench.storage)
    const define = { name: 'job', input: anything }
    const execute = (ctx: JobContext) =>
      ctx.run('flaky', { retry: { maxAttempts: 3, delay: 1000 } }, async ({ attempt, checkpoint, save }) => {
        starts.push([attempt, checkpoint])
        if (attempt === 1) throw new Error('boom')
        if (checkpoint !== undefined) return 'done'
        await save('half')
        return new Promise<string>(() => {})
      })
    const first = bench.open({ storage: mortal.storage })
    const job = first.defineJob(define, execute)
    first.start()
    await settled()
    const { id } = await job.trigger({})
    await bench.clock.advance(1000)
    mortal.kill()
    const second = bench.open()
    second.defineJob(define, execute)
    second.start()
    await bench.clock.advance(40_000)
    expect(starts).toEqual([
      [1, undefined],
      [2, undefined],
      [2, 'half'],
    ])
    expect(await second.getRun(id)).toMatchObject({ status: 'completed', output: 'done' })
  })

  it('lets its neighbours run meanwhile, and starts again beside them', async () => {
    const order: string[] = []
    const { now } = await perform(async (ctx) => {
      await Promise.all([
        ctx.run('flaky', { retry: twice }, ({ attempt }) => {
          order.push(`flaky ${attempt}`)
          if (attempt === 1) throw new Error('boom')
        }),
        ctx.run('slow', async () => {
          await new Promise<void>((resolve) => bench.clock.schedule(5000, resolve))
          order.push('slow')
        }),
      ])
    })
    expect(await now()).toMatchObject({ status: 'running' })
    await bench.clock.advance(1000)
    expect(order).toEqual(['flaky 1', 'flaky 2'])
    await bench.clock.advance(4000)
    expect(await now()).toMatchObject({ status: 'completed' })
  })

  it('is tried again also when nobody awaits it', async () => {
    const starts: number[] = []
    const { now } = await perform((ctx) => {
      void flaky(starts, 1)(ctx)
    })
    await bench.clock.advance(1000)
    expect(starts).toEqual([1, 2])
    expect(await now()).toMatchObject({ status: 'completed' })
  })

  it('begins anew with each attempt of the run', async () => {
    const starts: number[] = []
    const { now } = await perform(flaky(starts, 5), { maxAttempts: 2, delay: 0 })
    await bench.clock.advance(4000)
    expect(starts).toEqual([1, 2, 3, 4, 5, 6])
    expect(await now()).toMatchObject({ status: 'completed', attempt: 2 })
  })

  it('may not run at most once', async () => {
    const { now } = await perform((ctx) => ctx.run('step', { once: true, retry: twice }, () => 1))
    expect(await now()).toMatchObject({ status: 'failed', error: expect.stringContaining('once or retry') })
  })
})

describe('a step of a worker that is lost', () => {
  it('cannot count crashes', async () => {
    const { now } = await perform((ctx) => ctx.run('step', { retry: { ...twice, countCrashes: true } }, () => 1))
    expect(await now()).toMatchObject({ status: 'failed', error: expect.stringContaining('countCrashes is for jobs') })
  })
})

describe('the time-out of a step', () => {
  it('aborts the signal and fails the try', async () => {
    const reasons: unknown[] = []
    const { now } = await perform((ctx) =>
      ctx.run('slow', { timeout: 1000 }, ({ signal }) => {
        signal.addEventListener('abort', () => reasons.push(signal.reason))
        return new Promise(() => {})
      }),
    )
    await bench.clock.advance(1000)
    expect(reasons).toMatchObject([{ code: 'TIMEOUT' }])
    expect(await now()).toMatchObject({ status: 'failed', error: 'Step "slow" took longer than 1000 ms.' })
  })

  it('counts for each try', async () => {
    let starts = 0
    const { now } = await perform((ctx) =>
      ctx.run('slow', { timeout: 1000, retry: twice }, () => {
        starts += 1
        return starts === 1 ? new Promise<never>(() => {}) : starts
      }),
    )
    await bench.clock.advance(2000)
    expect(await now()).toMatchObject({ status: 'completed', output: 2 })
  })

  it('passes a cancel on', async () => {
    const reasons: unknown[] = []
    const { durably, id } = await perform((ctx) =>
      ctx.run('slow', { timeout: 60_000 }, ({ signal }) => {
        signal.addEventListener('abort', () => reasons.push(signal.reason))
        return new Promise(() => {})
      }),
    )
    await durably.cancel(id)
    await settled()
    expect(reasons).toMatchObject([{ code: 'CANCELLED' }])
  })

  it.each([0, -1, Number.NaN])('is refused where it makes no sense: %s', async (timeout) => {
    const { now } = await perform((ctx) => ctx.run('step', { timeout }, () => 1))
    expect(await now()).toMatchObject({ status: 'failed', error: expect.stringContaining('timeout of step "step"') })
  })
})
