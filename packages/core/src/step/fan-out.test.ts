import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  defineJob,
  type Durably,
  type JobContext,
  PayloadTooLargeError,
  RunFailedError,
  type Storage,
  StorageError,
} from '../index'
import { scaled } from '../../../../test/scale'
import { settled } from '../testing/fake-clock'
import {
  anything,
  type Bench,
  countCalls,
  createBench,
  createGate,
  createMortal,
  found,
  recordEvents,
} from '../testing/test-bench'

let bench: Bench

beforeEach(() => {
  bench = createBench()
})

afterEach(() => bench.close())

async function quiet(): Promise<void> {
  for (let round = 0; round < 5; round++) {
    await settled()
    await bench.clock.advance(20)
  }
}

const numbers = (count: number) => Array.from({ length: count }, (_, n) => n)

const double = defineJob({ name: 'double', input: anything }, (_ctx, n) => Number(n) * 2)

/** The run of a job that is given these bodies, once nothing happens any more without time passing. */
async function perform(execute: (ctx: JobContext) => unknown, durably: Durably = bench.open({ concurrency: 10 })) {
  durably.register({ double })
  const job = durably.defineJob({ name: 'parent', input: anything }, execute)
  durably.start()
  await settled()
  const { id } = await job.trigger({})
  await quiet()
  return { durably, id, now: async () => found(await durably.getRun(id)) }
}

describe('ctx.triggerAll and ctx.waitAll', () => {
  it('create a run for each payload and give their outputs in order, in one step each', async () => {
    const { now, durably, id } = await perform(async (ctx) => {
      const runs = await ctx.triggerAll('start', double, numbers(1200))
      expect(runs).toMatchObject({ jobName: 'double', count: 1200 })
      return ctx.waitAll('results', runs)
    })
    expect(await now()).toMatchObject({ status: 'completed', output: numbers(1200).map((n) => n * 2) })
    expect(await durably.getSteps(id)).toMatchObject([
      { name: 'start', kind: 'triggerAll', status: 'completed' },
      { name: 'results', kind: 'waitAll', status: 'completed' },
    ])
    const children = await durably.getRuns({ jobName: 'double' })
    expect(children.map(({ payload }) => payload).sort((a, b) => Number(a) - Number(b))).toEqual(numbers(1200))
    expect(children.every(({ parentRunId }) => parentRunId === id)).toBe(true)
  })

  it('take no payloads for an answer', async () => {
    const { now } = await perform(async (ctx) => ctx.waitAll('results', await ctx.triggerAll('start', double, [])))
    expect(await now()).toMatchObject({ status: 'completed', output: [] })
  })

  it('look at the parent a few times, however many children it has', async () => {
    for (const count of [100, 1000]) {
      const counted = countCalls(bench.storage)
      let passes = 0
      const durably = bench.open({ storage: counted.storage, concurrency: 10 })
      const { now } = await perform(async (ctx) => {
        passes += 1
        return (await ctx.waitAll('results', await ctx.triggerAll('start', double, numbers(count)))).length
      }, durably)
      expect(await now()).toMatchObject({ status: 'completed', output: count })
      expect(passes).toBeLessThanOrEqual(3)
      expect(counted.calls.getRuns ?? 0).toBeLessThanOrEqual(20)
      await durably.stop()
    }
  })

  it('run no more than the limit at a time', async () => {
    const gates = numbers(7).map(() => createGate())
    let running = 0
    let most = 0
    const slow = defineJob({ name: 'slow', input: anything }, async (_ctx, n) => {
      running += 1
      most = Math.max(most, running)
      await gates[Number(n)]?.opened
      running -= 1
      return n
    })
    const durably = bench.open({ concurrency: 10 })
    durably.register({ slow })
    const { now } = await perform(async (ctx) => {
      return ctx.waitAll('results', await ctx.triggerAll('start', slow, numbers(7), { limit: 3 }))
    }, durably)
    expect(running).toBe(3)
    for (const gate of gates) {
      gate.open()
      await quiet()
    }
    expect(most).toBe(3)
    expect(await now()).toMatchObject({ status: 'completed', output: numbers(7) })
  })

  it('check every payload before the first run is created', async () => {
    const strict = defineJob({ name: 'strict', input: anything }, () => null)
    const durably = bench.open()
    durably.register({ strict })
    const { now } = await perform((ctx) => ctx.triggerAll('start', strict, [1, 2, new Date()]), durably)
    expect(await now()).toMatchObject({ status: 'failed', error: expect.stringContaining('Date') })
    expect(await durably.getRuns({ jobName: 'strict' })).toEqual([])
  })

  it('create each run once when the worker dies between two commits', async () => {
    const mortal = createMortal(bench.storage)
    let commits = 0
    const dying = {
      ...mortal.storage,
      commit: async (list: Parameters<typeof mortal.storage.commit>[0]) => {
        const answer = mortal.storage.commit(list)
        commits += list.filter(({ children }) => children.length > 0).length
        if (commits === 2) mortal.kill()
        return answer
      },
    }
    const execute = async (ctx: JobContext) => {
      return ctx.waitAll('results', await ctx.triggerAll('start', double, numbers(1200)))
    }
    const { id } = await perform(execute, bench.open({ storage: dying, concurrency: 1 }))
    expect((await bench.storage.getRuns({ jobNames: ['double'] })).length).toBe(1000)
    const second = bench.open({ concurrency: 10 })
    second.register({ double })
    second.defineJob({ name: 'parent', input: anything }, execute)
    second.start()
    await bench.clock.advance(40_000)
    await quiet()
    expect(await second.getRun(id)).toMatchObject({ status: 'completed', output: numbers(1200).map((n) => n * 2) })
    expect((await bench.storage.getRuns({ jobNames: ['double'] })).length).toBe(1200)
  })

  describe('create each run once when the storage refuses one of a later commit', () => {
    let isRefusing: boolean

    /** One that refuses what follows the first 500 of them. */
    function openRefusing(): Durably {
      isRefusing = true
      const storage: Storage = {
        ...bench.storage,
        async commit(commits) {
          const isRefused = commits.some(({ children }) => children.some(({ payload }) => payload === '600'))
          if (isRefusing && isRefused) throw new StorageError('STORAGE_REJECTED', 'No 600.')
          return bench.storage.commit(commits)
        },
      }
      return bench.open({ storage, concurrency: 10 })
    }

    const payloads = async () => (await bench.storage.getRuns({ jobNames: ['double'] })).map(({ payload }) => payload)

    it.each([700, 1200])('and the run of %i is retried by hand', async (count) => {
      const { durably, id, now } = await perform(
        (ctx) => ctx.triggerAll('start', double, numbers(count)),
        openRefusing(),
      )
      expect(await now()).toMatchObject({ status: 'failed', error: 'No 600.' })
      expect(new Set(await payloads()).size).toBe(500)
      await durably.retry(id)
      await quiet()
      expect(await now()).toMatchObject({ status: 'failed', attempt: 2 })
      isRefusing = false
      await durably.retry(id)
      await quiet()
      expect(await now()).toMatchObject({ status: 'completed', output: { count } })
      const created = await payloads()
      expect([created.length, new Set(created).size]).toEqual([count, count])
    })

    it('and the run is tried again by its policy, or the call by a plugin', async () => {
      const durably = openRefusing()
      durably.use({
        name: 'again',
        aroundRun: (_run, next) => next().catch(() => next()),
      })
      durably.register({ double })
      const job = durably.defineJob({ name: 'parent', input: anything, retry: { maxAttempts: 3, delay: 10 } }, (ctx) =>
        ctx.triggerAll('start', double, numbers(700)),
      )
      durably.start()
      const { id } = await job.trigger({})
      await quiet()
      expect(await durably.getRun(id)).toMatchObject({ status: 'failed', attempt: 3 })
      expect((await payloads()).length).toBe(500)
    })
  })

  it('tell of each run that was created', async () => {
    const durably = bench.open({ concurrency: 10 })
    const events = recordEvents(durably, ['run:trigger', 'step:complete'])
    await perform((ctx) => ctx.triggerAll('start', double, numbers(3)), durably)
    const triggered = events.filter(({ type }) => type === 'run:trigger')
    expect(triggered).toMatchObject([{ jobName: 'parent' }, ...numbers(3).map((payload) => ({ payload }))])
    expect(events.filter(({ type }) => type === 'step:complete')).toMatchObject([{ stepName: 'start' }])
  })

  it('wait for runs that ctx.trigger created as well', async () => {
    const { now } = await perform(async (ctx) => {
      const runs = await Promise.all(numbers(3).map((n) => ctx.trigger(`start ${n}`, double, n)))
      return ctx.waitAll('results', runs)
    })
    expect(await now()).toMatchObject({ status: 'completed', output: [0, 2, 4] })
  })
})

describe('ctx.waitAll', () => {
  const picky = defineJob({ name: 'picky', input: anything }, (_ctx, n) => {
    if (Number(n) % 2 === 1) throw new Error(`no odd number: ${String(n)}`)
    return n
  })

  function performPicky(execute: (ctx: JobContext) => unknown) {
    const durably = bench.open({ concurrency: 10 })
    durably.register({ picky })
    return perform(execute, durably)
  }

  it('throws what the first that failed would have made ctx.wait throw, when all have ended', async () => {
    const caught: unknown[] = []
    const { now, durably } = await performPicky(async (ctx) => {
      const runs = await ctx.triggerAll('start', picky, [0, 3, 1, 2])
      try {
        return await ctx.waitAll('results', runs)
      } catch (error) {
        caught.push(error)
        await ctx.sleep('later', 1000)
        return 'caught'
      }
    })
    await bench.clock.advance(1000)
    await quiet()
    expect(await now()).toMatchObject({ status: 'completed', output: 'caught' })
    expect(caught.length).toBe(2)
    for (const error of caught) {
      expect(error).toBeInstanceOf(RunFailedError)
      expect((error as RunFailedError).message).toContain('no odd number: 3')
    }
    expect(await durably.counts()).toMatchObject({ failed: 2, pending: 0 })
  })

  it('tells of each what became of it, when asked to', async () => {
    const never = defineJob({ name: 'never', input: anything }, (ctx) => ctx.sleep('long', 3_600_000))
    const durably = bench.open({ concurrency: 10 })
    durably.register({ picky, never })
    const { now } = await perform(async (ctx) => {
      const [first] = [await ctx.triggerAll('start', picky, [4, 5])]
      const last = await ctx.trigger('last', never, {})
      const ids = first.ids.map((id) => ({ id, jobName: 'picky' }))
      return ctx.waitAll('results', [...ids, last], { failures: 'values' })
    }, durably)
    const [run] = await durably.getRuns({ jobName: 'never' })
    await durably.cancel(found(run).id)
    await quiet()
    expect(await now()).toMatchObject({
      status: 'completed',
      output: [
        { ok: true, output: 4 },
        { ok: false, status: 'failed', error: 'no odd number: 5' },
        { ok: false, status: 'cancelled', id: found(run).id },
      ],
    })
  })

  it('waits for a part of them, as a step of its own', async () => {
    const { now } = await perform(async (ctx) => {
      const runs = await ctx.triggerAll('start', double, numbers(10))
      const parts = [0, 4, 8].map((from) => ctx.waitAll(`from ${from}`, runs, { from, count: 4 }))
      return Promise.all(parts)
    })
    expect(await now()).toMatchObject({
      status: 'completed',
      output: [
        [0, 2, 4, 6],
        [8, 10, 12, 14],
        [16, 18],
      ],
    })
  })

  it('says how to wait for results that are too large for one value', async () => {
    const large = defineJob({ name: 'large', input: anything }, () => 'x'.repeat(400_000))
    const durably = bench.open({ concurrency: 10 })
    durably.register({ large })
    const { now } = await perform(async (ctx) => {
      const runs = await ctx.triggerAll('start', large, numbers(4))
      const error = await ctx.waitAll('all', runs).catch((thrown: unknown) => thrown)
      expect(error).toBeInstanceOf(PayloadTooLargeError)
      const part = await ctx.waitAll('part', runs, { from: 2, count: 2 })
      return [(error as Error).message, part.map((text) => text.length)]
    }, durably)
    expect(await now()).toMatchObject({
      status: 'completed',
      output: [expect.stringContaining('{ from, count }'), [400_000, 400_000]],
    })
  })

  it('refuses what it cannot wait for', async () => {
    const { now, durably } = await perform(async (ctx) => {
      const messages: string[] = []
      const attempt = async (call: () => Promise<unknown>) => {
        messages.push(
          await Promise.resolve()
            .then(call)
            .then(String, (error: Error) => error.message),
        )
      }
      const runs = await ctx.triggerAll('start', double, [1])
      await attempt(() => ctx.waitAll('a', 'nothing' as never))
      await attempt(() => ctx.waitAll('b', [{ id: 7 }] as never))
      await attempt(() => ctx.waitAll('c', runs, { from: -1 }))
      await attempt(() => ctx.waitAll('d', runs, { failures: 'ignore' as never }))
      await attempt(() => ctx.waitAll('e', [{ id: 'nobody', jobName: 'double' }]))
      await attempt(() => ctx.triggerAll('f', double, 'text' as never))
      await attempt(() => ctx.triggerAll('g', double, [1], { limit: 0 }))
      await attempt(() => ctx.triggerAll('h', double, [1], { limit: 2, concurrencyKey: 'k' }))
      await attempt(() => ctx.triggerAll('i', double, [1], { idempotencyKey: 'k' } as never))
      await attempt(() => ctx.triggerAll('j', double, new Array(30_001).fill(0)))
      return messages
    })
    await quiet()
    expect((await now()).output).toEqual([
      expect.stringContaining('what ctx.triggerAll returned'),
      expect.stringContaining('what ctx.triggerAll returned'),
      expect.stringContaining('from must be an integer from 0'),
      expect.stringContaining("'throw' or 'values'"),
      expect.stringContaining('nobody'),
      expect.stringContaining('a list of payloads'),
      expect.stringContaining('limit must be an integer from 1 to 1000'),
      expect.stringContaining('not both'),
      expect.stringContaining('no idempotencyKey'),
      expect.stringContaining('30000 runs at most'),
    ])
    expect(await durably.counts()).toMatchObject({ completed: 2 })
  })
})

describe('many children by ctx.trigger and ctx.wait', () => {
  it('wake their parent together', async () => {
    let passes = 0
    const { now } = await perform(async (ctx) => {
      passes += 1
      const outputs = numbers(300).map(async (n) => {
        const run = await ctx.trigger(`start ${n}`, double, n, { concurrencyKey: 'few', concurrencyLimit: 5 })
        return ctx.wait(`result ${n}`, run)
      })
      return (await Promise.all(outputs)).length
    })
    expect(await now()).toMatchObject({ status: 'completed', output: 300 })
    expect(passes).toBeLessThanOrEqual(5)
  })

  it.each([200, scaled({ quick: 1000, full: 3000 })])(
    'take a tenth of the time at most to look at, %s of them',
    async (count) => {
      let runsRead = 0
      // Everything takes its time, so that the parent is held while its children end.
      const storage: Storage = {
        ...bench.storage,
        async getRuns(query) {
          runsRead += query.ids?.length ?? 0
          await bench.clock.advance((query.ids?.length ?? 0) / 100)
          return bench.storage.getRuns(query)
        },
        async commit(commits) {
          await bench.clock.advance(1)
          return bench.storage.commit(commits)
        },
      }
      let passes = 0
      const durably = bench.open({ storage, concurrency: 10 })
      const { now } = await perform(async (ctx) => {
        passes += 1
        const outputs = numbers(count).map(async (n) => {
          const run = await ctx.trigger(`start ${n}`, double, n, { concurrencyKey: 'few', concurrencyLimit: 5 })
          return ctx.wait(`result ${n}`, run)
        })
        return (await Promise.all(outputs)).length
      }, durably)
      for (let round = 0; round < 1000 && (await now()).status !== 'completed'; round++) await quiet()
      expect(await now()).toMatchObject({ status: 'completed', output: count })
      expect(runsRead / 100).toBeLessThan(bench.clock.monotonic() / 10)
      // The first one goes on until its children are created, beside those that end.
      expect(passes).toBeLessThanOrEqual(1 + count / 100)
    },
  )

  it('are heard of soon, however long their parent has been going on', async () => {
    const gates = numbers(10).map(() => createGate())
    const gated = defineJob({ name: 'gated', input: anything }, (_ctx, n) => gates[Number(n)]?.opened)
    const durably = bench.open({ concurrency: 20 })
    durably.register({ gated })
    const { id } = await perform(async (ctx) => {
      await ctx.sleep('for long', 3_600_000)
      const runs = await Promise.all(numbers(10).map((n) => ctx.trigger(`start ${n}`, gated, n)))
      await Promise.all(runs.map((run, n) => ctx.wait(`result ${n}`, run)))
    }, durably)
    await bench.clock.advance(3_600_000)
    await quiet()
    for (const n of [0, 1, 2]) {
      gates[n]?.open()
      await bench.clock.advance(20)
      const steps = await durably.getSteps(id)
      expect(steps).toContainEqual(expect.objectContaining({ name: `result ${n}`, status: 'completed' }))
    }
    await durably.cancel(id)
  })

  it('do not hold back a signal when their parent is held and has just looked at them', async () => {
    const gates = numbers(20).map(() => createGate())
    const heard: unknown[] = []
    const gated = defineJob({ name: 'gated', input: anything }, (_ctx, n) => gates[Number(n)]?.opened)
    const durably = bench.open({ concurrency: 30 })
    durably.register({ gated })
    const { id } = await perform(async (ctx) => {
      const held = ctx.run('held', ({ signal }) => new Promise((resolve) => signal.addEventListener('abort', resolve)))
      const runs = await Promise.all(numbers(20).map((n) => ctx.trigger(`start ${n}`, gated, n)))
      const hear = (wait: Promise<unknown>, what: unknown) => wait.then(() => heard.push(what))
      for (const name of ['one', 'two']) void hear(ctx.waitFor(name), name)
      await Promise.all([held, ...runs.map((run, n) => hear(ctx.wait(`result ${n}`, run), n))])
    }, durably)
    for (const [n, name] of ['one', 'two'].entries()) {
      gates[n]?.open()
      await settled()
      await durably.signal(id, name)
      await settled()
    }
    expect(new Set(heard)).toEqual(new Set([0, 'one', 'two']))
    await bench.clock.advance(20)
    expect(new Set(heard)).toEqual(new Set([0, 'one', 'two', 1]))
    await durably.cancel(id)
  })

  it('are heard of one by one when they take their time', async () => {
    const heard: number[] = []
    const slow = defineJob({ name: 'slow', input: anything }, async (ctx, n) => {
      await ctx.sleep('its time', 60_000 * (Number(n) + 1))
      return n
    })
    const durably = bench.open({ concurrency: 10 })
    durably.register({ slow })
    await perform(async (ctx) => {
      const runs = await Promise.all(numbers(10).map((n) => ctx.trigger(`start ${n}`, slow, n)))
      await Promise.all(
        runs.map(async (run, n) => {
          await ctx.wait(`result ${n}`, run)
          await ctx.run(`heard ${n}`, () => heard.push(n))
        }),
      )
    }, durably)
    for (const n of numbers(10)) {
      await bench.clock.advance(60_000)
      await quiet()
      expect(heard).toEqual(numbers(n + 1))
    }
  })

  it('leave the parent ready for a signal meanwhile', async () => {
    const slow = defineJob({ name: 'slow', input: anything }, (ctx) => ctx.sleep('long', 3_600_000))
    const durably = bench.open({ concurrency: 10 })
    durably.register({ slow })
    const { id, now } = await perform(async (ctx) => {
      const runs = await ctx.triggerAll('start', slow, numbers(20))
      return Promise.race([ctx.waitAll('results', runs), ctx.waitFor('stop')])
    }, durably)
    expect(await now()).toMatchObject({ status: 'pending', ownerId: null })
    await durably.signal(id, 'stop', 'now')
    await quiet()
    expect(await now()).toMatchObject({ status: 'completed', output: 'now' })
  })

  it('are run to their end by runUntilIdle', async () => {
    const durably = bench.open({ concurrency: 10 })
    durably.register({ double })
    const parent = durably.defineJob({ name: 'parent', input: anything }, async (ctx) => {
      return (await ctx.waitAll('results', await ctx.triggerAll('start', double, numbers(100)))).length
    })
    const { id } = await parent.trigger({})
    const drained = durably.runUntilIdle()
    await quiet()
    expect(await drained).toMatchObject({ nextWakeAt: null })
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed', output: 100 })
  })
})
