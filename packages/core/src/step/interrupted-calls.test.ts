import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createDurably, type JobContext, type Storage, systemClock } from '../index'
import { createMemoryStorage } from '../memory/memory-storage'
import { settled } from '../testing/fake-clock'
import { anything, type Bench, createBench, createGate, found, recordEvents } from '../testing/test-bench'

let bench: Bench

beforeEach(() => {
  bench = createBench()
})

afterEach(() => bench.close())

/** The order in which the calls reject that `calls` makes, one instant of the clock after the other. */
function noteRejections(order: string[]) {
  return (name: string, call: Promise<unknown>) => void call.catch(() => order.push(name))
}

describe('when a run is interrupted, its calls', () => {
  it('reject one in a turn of the loop, in their order', async () => {
    const order: string[] = []
    const note = noteRejections(order)
    const { durably, run } = await bench.perform((ctx) => {
      for (const name of ['a', 'b']) note(name, ctx.waitFor(name))
      note(
        'c',
        ctx.run('c', ({ signal }) => new Promise((_, reject) => signal.addEventListener('abort', reject))),
      )
      note('d', ctx.sleep('d', 1000))
      return new Promise(() => {})
    })
    await durably.cancel(run.id)
    await settled()
    for (const turns of [1, 2, 3, 4]) {
      expect(order).toEqual(['a', 'b', 'c', 'd'].slice(0, turns))
      await bench.clock.advance(1)
    }
  })

  it.each(['all', 'allSettled', 'race', 'any'] as const)('end Promise.%s of waits in as many turns', async (how) => {
    const names = Array.from({ length: 10 }, (_, index) => `wait ${index}`)
    const { durably, run, now } = await bench.perform(async (ctx) => {
      const together: (calls: Promise<unknown>[]) => Promise<unknown> = Promise[how].bind(Promise)
      await together(names.map((name) => ctx.waitFor(name)))
    })
    await durably.cancel(run.id)
    await bench.clock.advance(names.length)
    expect(await now()).toMatchObject({ status: 'cancelled' })
  })

  it('reject before those that the job makes now', async () => {
    const order: string[] = []
    const note = noteRejections(order)
    const { durably, run, now } = await bench.perform(async (ctx) => {
      const [a, b] = ['a', 'b'].map((name) => {
        const call = ctx.waitFor(name)
        note(name, call)
        return call
      })
      await a?.catch(() => {})
      await ctx.run('after a', () => {}).catch(() => order.push('after a'))
      await b
    })
    await durably.cancel(run.id)
    await bench.clock.advance(10)
    expect(order).toEqual(['a', 'b', 'after a'])
    expect(await now()).toMatchObject({ status: 'cancelled' })
  })

  it('are not reported where nobody hears of them, and not taken for handled late', async () => {
    const heard: string[] = []
    const { process } = globalThis as unknown as { process: { on: Listen; off: Listen } }
    type Listen = (event: string, listener: () => void) => void
    const listeners = ['unhandledRejection', 'rejectionHandled', 'warning'].map(
      (event) => [event, () => heard.push(event)] as const,
    )
    for (const [event, listener] of listeners) process.on(event, listener)
    const { durably, run, now } = await bench.perform(async (ctx) => {
      const branch = async () => void (await ctx.waitFor('branch'))
      const left = branch()
      await new Promise<void>((resolve) => bench.clock.schedule(50, resolve))
      await left
    })
    await durably.cancel(run.id)
    await bench.clock.advance(49)
    await settled()
    expect(await now()).toMatchObject({ status: 'running' })
    await bench.clock.advance(1)
    await settled()
    for (const [event, listener] of listeners) process.off(event, listener)
    expect(heard).toEqual([])
    expect(await now()).toMatchObject({ status: 'cancelled' })
  })

  it('are not reported either when a library has put back the process.emit that was there before', async () => {
    const { process } = globalThis as unknown as { process: { on: Listen; off: Listen; emit: unknown } }
    type Listen = (event: 'unhandledRejection', listener: (error: unknown) => void) => void
    const { emit: asItIs } = process
    const heard: unknown[] = []
    const listen = (error: unknown) => heard.push(error)
    const interruptOne = async () => {
      const { durably, run } = await bench.perform(async (ctx) => {
        const branch = async () => void (await ctx.waitFor('branch'))
        const left = branch()
        await new Promise<void>((resolve) => bench.clock.schedule(50, resolve))
        await left
      })
      await durably.cancel(run.id)
      await bench.clock.advance(50)
      await settled()
      await durably.stop()
    }
    process.on('unhandledRejection', listen)
    try {
      process.emit = (Object.getPrototypeOf(Object.getPrototypeOf(process)) as typeof process).emit
      await interruptOne()
      const [first, before] = [
        process.emit,
        (Object.getPrototypeOf(Object.getPrototypeOf(process)) as typeof process).emit,
      ]
      process.emit = before
      await interruptOne()
      expect(heard).toEqual([])
      // Who stands around ours leaves it where it is.
      const around = function (this: unknown, ...args: unknown[]) {
        return (first as (...all: unknown[]) => unknown).apply(this, args)
      }
      process.emit = around
      await interruptOne()
      expect(process.emit).toBe(around)
      expect(heard).toEqual([])
    } finally {
      process.emit = asItIs
      process.off('unhandledRejection', listen)
    }
  })

  it('reject after those before them, whose bodies let go soon', async () => {
    const order: string[] = []
    const note = noteRejections(order)
    const gate = createGate()
    const { durably, run, now } = await bench.perform(async (ctx) => {
      const slow = ctx.run('slow', () => gate.opened)
      note('slow', slow)
      note('wait', ctx.waitFor('b'))
      await slow
    })
    await durably.cancel(run.id)
    await bench.clock.advance(499)
    expect(order).toEqual([])
    gate.open()
    await bench.clock.advance(1)
    expect(order).toEqual(['slow'])
    expect(await now()).toMatchObject({ status: 'cancelled' })
  })

  // A body may let go only when the wait behind it does: in that order they would take the whole grace.
  it('do not wait for those before them, whose bodies take their time', async () => {
    const stop = new AbortController()
    const { durably, run, now } = await bench.perform(async (ctx) => {
      const slow = ctx.run(
        'slow',
        () => new Promise<void>((resolve) => stop.signal.addEventListener('abort', () => resolve())),
      )
      try {
        await ctx.waitFor('stop')
      } finally {
        stop.abort()
      }
      await slow
    })
    await durably.cancel(run.id)
    await bench.clock.advance(500)
    expect(stop.signal.aborted).toBe(true)
    expect(await now()).toMatchObject({ status: 'cancelled' })
  })

  it('reject also when the body has let go after all', async () => {
    const order: string[] = []
    const note = noteRejections(order)
    const gate = createGate()
    const { durably, run, now } = await bench.perform(async (ctx) => {
      const slow = ctx.run('slow', () => gate.opened)
      note('slow', slow)
      await slow
    })
    await durably.cancel(run.id)
    await bench.clock.advance(3000)
    expect(order).toEqual([])
    gate.open()
    await bench.clock.advance(1)
    expect(order).toEqual(['slow'])
    expect(await now()).toMatchObject({ status: 'cancelled' })
  })

  it('never settle once the function has', async () => {
    const order: string[] = []
    const note = noteRejections(order)
    const { durably, run, now } = await bench.perform(async (ctx) => {
      const first = ctx.waitFor('first')
      note('second', ctx.waitFor('second'))
      await first.catch(() => order.push('first'))
    })
    await durably.cancel(run.id)
    await bench.clock.advance(10_000)
    expect(order).toEqual(['first'])
    expect(await now()).toMatchObject({ status: 'cancelled' })
  })

  it.each(['cancel', 'time-out'])('leave room for the grace when a body catches them in a loop: %s', async (how) => {
    const durably = bench.open()
    let calls = 0
    const timeout = how === 'cancel' ? {} : { timeout: 1000 }
    const job = durably.defineJob({ name: 'job', input: anything, ...timeout }, async (ctx) => {
      for (;;) {
        calls += 1
        const step = ctx.run(`try ${calls}`, () => new Promise<void>((resolve) => bench.clock.schedule(100, resolve)))
        await step.catch(() => {})
      }
    })
    durably.start()
    const { id } = await job.trigger({})
    await settled()
    if (how === 'cancel') await durably.cancel(id)
    await bench.clock.advance(7000)
    expect(await durably.getRun(id)).toMatchObject({ status: how === 'cancel' ? 'cancelled' : 'timed_out' })
    const made = calls
    await bench.clock.advance(1000)
    expect(calls).toBe(made)
  })
})

describe('a call that rejects', () => {
  const children = [undefined, { concurrencyLimit: -1 }, { idempotencyKey: 5 }, { labels: 'x' }] as never[]

  it.each<[string, (ctx: JobContext, name: string, n: number) => Promise<unknown>]>([
    ['a trigger with bad options', (ctx, name, n) => ctx.trigger(name, { name: 'job' }, {}, children[n % 4])],
    ['a trigger of no job', (ctx, name) => ctx.trigger(name, { name: 'nobody' }, {})],
    ['triggers of no job', (ctx, name) => ctx.triggerAll(name, { name: 'nobody' }, [{}])],
    ['a sleep of nonsense', (ctx, name) => ctx.sleep(name, -1)],
    ['a wait for nothing', (ctx, name) => ctx.wait(name, {} as never)],
    ['a name that is taken', (ctx) => ctx.sleep('same', -1)],
  ])('leaves timers their turn in a job that calls again for ever: %s', async (_what, call) => {
    const durably = createDurably({ storage: createMemoryStorage(), logger: null })
    let goesOn = true
    const job = durably.defineJob({ name: 'job', input: anything }, async (ctx) => {
      let rejected = 0
      for (let n = 0; goesOn && n < 100_000; n++) await call(ctx, `call ${n}`, n).catch(() => (rejected += 1))
      return { stopped: !goesOn, rejected: rejected > 0 }
    })
    durably.start()
    const handle = job.triggerAndWait({})
    systemClock.schedule(20, () => {
      goesOn = false
    })
    expect((await handle).output).toEqual({ stopped: true, rejected: true })
    await durably.close()
  })
})

describe('a cancel', () => {
  /** Cancels the run with the first commit that has what is asked for. */
  function cancelledBy(has: (kind: string, status: string) => boolean): Storage {
    return {
      ...bench.storage,
      async commit(commits) {
        for (const { lease, steps } of commits) {
          if (!steps.some(({ kind, status }) => has(kind, status))) continue
          const events = { cancelled: [], requested: [] }
          await bench.storage.command({ kind: 'cancel', runId: lease.runId, events })
        }
        return bench.storage.commit(commits)
      },
    }
  }

  it.each<[string, (ctx: JobContext) => Promise<unknown>]>([
    ['a wait for a signal', (ctx) => ctx.waitFor('approval')],
    ['a sleep', (ctx) => ctx.sleep('long', 60_000)],
    [
      'the delay of a retry',
      (ctx) => ctx.run('flaky', { retry: { maxAttempts: 2, delay: 60_000 } }, () => Promise.reject(new Error('no'))),
    ],
  ])('that comes while %s is being recorded ends the run at once', async (_what, execute) => {
    const storage = cancelledBy((_kind, status) => status === 'waiting')
    const { now, events } = await bench.perform(execute, { storage })
    expect(await now()).toMatchObject({ status: 'cancelled' })
    expect(events.at(-1)).toMatchObject({ type: 'run:cancel' })
  })

  it('that comes while a child is being prepared creates none', async () => {
    const gate = createGate()
    const durably = bench.open()
    const input = {
      '~standard': {
        ...anything['~standard'],
        async validate(value: unknown) {
          await gate.opened
          return { value }
        },
      },
    }
    const child = durably.defineJob({ name: 'child', input }, () => 1)
    const parent = durably.defineJob({ name: 'parent', input: anything }, (ctx) => ctx.trigger('start', child, {}))
    durably.start()
    const { id } = await parent.trigger({})
    await settled()
    await durably.cancel(id)
    gate.open()
    await bench.clock.advance(0)
    expect(await durably.getRun(id)).toMatchObject({ status: 'cancelled' })
    expect(await child.getRuns()).toEqual([])
  })

  it('is not held up by a read that a wait is at', async () => {
    const signals = found(bench.storage.signals)
    const storage: Storage = { ...bench.storage, signals: { ...signals, getUnread: () => new Promise(() => {}) } }
    const { durably, run, now } = await bench.perform((ctx) => ctx.waitFor('approval'), { storage })
    await durably.cancel(run.id)
    await settled()
    expect(await now()).toMatchObject({ status: 'cancelled' })
  })
})

describe('a call after the end of the run', () => {
  it('starts nothing, never settles, and is reported once', async () => {
    const gate = createGate()
    const settlings: string[] = []
    const reports: string[] = []
    const durably = bench.open()
    durably.onError((error, during) => reports.push(`${during}: ${(error as Error).message}`))
    let ran = false
    const job = durably.defineJob({ name: 'job', input: anything }, (ctx) => {
      void (async () => {
        await gate.opened
        for (const name of ['late', 'later']) {
          void ctx
            .run(name, () => {
              ran = true
            })
            .finally(() => settlings.push(name))
        }
      })()
    })
    durably.start()
    const { id } = await job.trigger({})
    await settled()
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed' })
    gate.open()
    await bench.clock.advance(10_000)
    expect({ ran, settlings }).toEqual({ ran: false, settlings: [] })
    expect(reports).toEqual([expect.stringContaining(`Step "late" was called when run ${id} of job "job" had ended`)])
  })

  it('is not reported where the function was only left for another execution, or told to end', async () => {
    const gate = createGate()
    const reports: unknown[] = []
    const { durably, run } = await bench.perform(async (ctx) => {
      void gate.opened.then(() => ctx.run('beside', () => 1).catch(() => {}))
      await ctx.sleep('long', 60_000)
    })
    durably.onError((error) => reports.push(error))
    await bench.clock.advance(0)
    expect(await durably.getRun(run.id)).toMatchObject({ status: 'pending' })
    gate.open()
    await settled()
    await durably.cancel(run.id)
    await bench.clock.advance(0)
    expect(reports).toEqual([])
  })
})

describe('stop() and runUntilIdle() in a job function', () => {
  it.each([
    ['stop()', 'stop', {}],
    // The run would be given back, taken up again, and come to the same call.
    ['stop()', 'stop', { timeout: 1000 }],
    ['runUntilIdle()', 'runUntilIdle', {}],
  ] as const)('are refused before they wait for ever: %s %s(%o)', async (call, method, options) => {
    const durably = bench.open()
    const events = recordEvents(durably, ['run:fail'])
    const job = durably.defineJob({ name: 'job', input: anything }, async () => {
      await Promise.resolve()
      await durably[method](options)
    })
    durably.start()
    const { id } = await job.trigger({})
    await settled()
    expect(await durably.getRun(id)).toMatchObject({ status: 'failed', errorDetail: { code: 'INVALID_OPTION' } })
    expect(events).toMatchObject([{ error: expect.stringContaining(`${call} in job "job" would wait for run ${id}`) }])
    expect(events).toMatchObject([{ error: expect.stringContaining('ctx.trigger') }])
  })

  it.each(['stop', 'runUntilIdle'] as const)('do not end the process when nobody awaits them: %s', async (method) => {
    const { process } = globalThis as unknown as { process: { on: Listen; off: Listen } }
    type Listen = (event: 'unhandledRejection', listener: (error: unknown) => void) => void
    const unhandled: unknown[] = []
    const listen = (error: unknown) => unhandled.push(error)
    process.on('unhandledRejection', listen)
    const durably = bench.open()
    const job = durably.defineJob({ name: 'job', input: anything }, () => void durably[method]())
    durably.start()
    const { id } = await job.trigger({})
    await settled()
    await settled()
    process.off('unhandledRejection', listen)
    expect(unhandled).toEqual([])
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed' })
    expect(durably.health().worker).toBe('running')
  })

  it('are refused in a plugin around it, too', async () => {
    const durably = bench.open()
    durably.use({
      name: 'stops',
      async aroundRun(_run, next) {
        await durably.stop()
        return next()
      },
    })
    const job = durably.defineJob({ name: 'job', input: anything }, () => 1)
    durably.start()
    const { id } = await job.trigger({})
    await settled()
    expect(await durably.getRun(id)).toMatchObject({ status: 'failed' })
  })

  it('are for other instances, for listeners, and for what a job has left behind', async () => {
    const durably = bench.open()
    const other = bench.open()
    const gate = createGate()
    const stopped: string[] = []
    durably.on('log:write', () => void durably.stop().then(() => stopped.push('listener')))
    const job = durably.defineJob({ name: 'job', input: anything }, async (ctx) => {
      void gate.opened.then(() => durably.stop()).then(() => stopped.push('left behind'))
      await other.stop()
      stopped.push('other')
      ctx.log.info('stop')
    })
    durably.start()
    const { id } = await job.trigger({})
    await settled()
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed' })
    gate.open()
    await settled()
    expect(stopped.sort()).toEqual(['left behind', 'listener', 'other'])
  })
})

describe('a body that was left behind', () => {
  it.each(['save', 'emit'] as const)('is refused %s() once, and told nothing any more', async (tool) => {
    const refused: unknown[] = []
    const gate = createGate()
    const { durably, run, now } = await bench.perform(async (ctx) => {
      async function goOn(call: (n: number) => Promise<void>): Promise<void> {
        await gate.opened
        for (let n = 0; n < 1000; n++) await call(n).catch((error) => refused.push(error))
      }
      if (tool === 'save') await ctx.run('step', (step) => goOn(step.save))
      else await ctx.stream('step', (emit) => goOn(emit))
    })
    await durably.cancel(run.id)
    await bench.clock.advance(6000)
    expect(await now()).toMatchObject({ status: 'cancelled' })
    gate.open()
    await settled()
    await bench.clock.advance(1000)
    expect(refused).toMatchObject([{ code: 'CANCELLED' }])
  })
})
