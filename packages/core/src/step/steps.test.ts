import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type JobContext, StepError, type StepTools } from '../index'
import {
  anything,
  type Bench,
  createBench,
  createGate,
  createMortal,
  type JobBody,
  recordEvents,
} from '../testing/test-bench'
import { settled } from '../testing/fake-clock'

let bench: Bench

beforeEach(() => {
  bench = createBench()
})

afterEach(() => bench.close())

/** The job on a worker that dies when its body opens the returned gate's wait; then again on a healthy one. */
async function crashAndGoOn(execute: JobBody, again: JobBody = execute) {
  const mortal = createMortal(bench.storage)
  const first = await bench.perform(execute, { storage: mortal.storage, workerId: 'first' })
  mortal.kill()
  const second = bench.open({ workerId: 'second' })
  second.defineJob({ name: 'job', input: anything }, again)
  const events = recordEvents(second)
  second.start()
  await settled()
  await second.recover({ workerId: 'first' })
  await settled()
  return { ...first, second, events }
}

const forever = () => new Promise<never>(() => {})

describe('ctx.run', () => {
  it('gives what the body gave, sync or async', async () => {
    const { run } = await bench.perform(async (ctx) => {
      const a = await ctx.run('sync', () => 1)
      const b = await ctx.run('async', async () => a + 1)
      const c = await ctx.run<number>('typed', {}, async () => b + 1)
      return [a, b, c]
    })
    expect(run).toMatchObject({ status: 'completed', output: [1, 2, 3], currentStepIndex: 3 })
  })

  it('numbers steps by the order of the calls', async () => {
    const { durably, run } = await bench.perform(async (ctx) => {
      const gate = createGate()
      const slow = ctx.run('slow', () => gate.opened)
      await ctx.run('quick', () => {})
      gate.open()
      await slow
      await ctx.run('last', () => {})
    })
    const steps = await durably.getSteps(run.id)
    expect(steps.map(({ name, index }) => [name, index])).toEqual([
      ['slow', 0],
      ['quick', 1],
      ['last', 2],
    ])
    expect(run.currentStepIndex).toBe(3)
  })

  it('gives a copy: what is done to the value returned does not reach it', async () => {
    const original = { list: [1] }
    const { run } = await bench.perform(async (ctx) => {
      const value = await ctx.run('a', () => original)
      original.list.push(2)
      return value
    })
    expect(run.output).toEqual({ list: [1] })
  })

  it('drops properties that are undefined, already the first time', async () => {
    const { run } = await bench.perform(async (ctx) => {
      const value: object = await ctx.run('a', () => ({ there: 1, gone: undefined }))
      return Object.keys(value)
    })
    expect(run.output).toEqual(['there'])
  })

  it('keeps a whole undefined and a null apart', async () => {
    const { run } = await bench.perform(async (ctx) => {
      const nothing = await ctx.run('undefined', () => undefined)
      const empty = await ctx.run('null', () => null)
      return [nothing === undefined, empty === null]
    })
    expect(run.output).toEqual([true, true])
  })

  it.each([
    ['an empty name', (ctx: JobContext) => ctx.run('', () => 1)],
    ['a name that is no string', (ctx: JobContext) => ctx.run(1 as unknown as string, () => 1)],
    ['no body', (ctx: JobContext) => ctx.run('a', undefined as unknown as () => 1)],
  ])('refuses %s', async (_what, execute) => {
    const { run } = await bench.perform(execute)
    expect(run).toMatchObject({ status: 'failed', errorDetail: { code: 'INVALID_OPTION' } })
  })
})

describe('skipping', () => {
  it('goes by name after a retry by hand', async () => {
    const ran: string[] = []
    let broken = true
    const { durably, run, now } = await bench.perform(async (ctx) => {
      const a = await ctx.run('a', () => ran.push('a'))
      await ctx.run('b', () => {
        ran.push('b')
        if (broken) throw new Error('no')
      })
      return a
    })
    broken = false
    await durably.retry(run.id)
    await settled()
    expect(ran).toEqual(['a', 'b', 'b'])
    expect(await now()).toMatchObject({ status: 'completed', output: 1, attempt: 2 })
  })

  it('goes by name after a crash, on another worker', async () => {
    const ran: string[] = []
    const { now, events } = await crashAndGoOn(
      async (ctx) => {
        await ctx.run('a', () => ran.push('a1'))
        await ctx.run('b', forever)
      },
      async (ctx) => {
        const a = await ctx.run('a', () => ran.push('a2'))
        const b = await ctx.run('b', () => ran.push('b2'))
        return [a, b]
      },
    )
    expect(ran).toEqual(['a1', 'b2'])
    expect(await now()).toMatchObject({ status: 'completed', output: [1, 2], attempt: 1, currentStepIndex: 2 })
    expect(events.filter(({ type }) => type.startsWith('step:'))).toMatchObject([
      { type: 'step:start', stepName: 'b', stepIndex: 1 },
      { type: 'step:complete', stepName: 'b', stepIndex: 1 },
    ])
  })

  it('does not mind steps that changed places, are new or are gone', async () => {
    const ran: string[] = []
    const { now, second, run } = await crashAndGoOn(
      async (ctx) => {
        await ctx.run('a', () => ran.push('a1'))
        await ctx.run('b', () => ran.push('b1'))
        await ctx.run('c', forever)
      },
      async (ctx) => {
        await ctx.run('new', () => ran.push('new2'))
        return ctx.run('b', () => ran.push('b2'))
      },
    )
    expect(ran).toEqual(['a1', 'b1', 'new2'])
    expect(await now()).toMatchObject({ status: 'completed', output: 2 })
    expect((await second.getSteps(run.id)).map(({ name }) => name).sort()).toEqual(['a', 'b', 'new'])
  })

  it('takes 5,000 recorded steps with one read', async () => {
    const names = Array.from({ length: 5000 }, (_, n) => `step-${n}`)
    let reads = 0
    let bodies = 0
    const countBody = (n: number) => {
      bodies += 1
      return n
    }
    const storage = {
      ...bench.storage,
      getSteps(...args: Parameters<typeof bench.storage.getSteps>) {
        reads += 1
        return bench.storage.getSteps(...args)
      },
    }
    let broken = true
    const { durably, run, now } = await bench.perform(
      async (ctx) => {
        const values = await Promise.all(names.map((name, n) => ctx.run(name, () => countBody(n))))
        if (broken) throw new Error('no')
        return values.length
      },
      { storage },
    )
    expect([run.status, bodies, reads]).toEqual(['failed', 5000, 0])
    broken = false
    await durably.retry(run.id)
    await settled()
    expect(await now()).toMatchObject({ status: 'completed', output: 5000 })
    expect([bodies, reads]).toEqual([5000, 1])
  })
})

it('fails with what a body returns that only looks like a promise', async () => {
  const odd = Object.defineProperty({}, 'then', {
    get() {
      throw new Error('ask me not')
    },
  })
  const { run, durably } = await bench.perform((ctx) => ctx.run('odd', () => odd))
  expect(run).toMatchObject({ status: 'failed', error: expect.stringContaining('ask me not') })
  expect(await durably.getSteps(run.id)).toMatchObject([{ name: 'odd', status: 'failed' }])
})

describe('a name used twice', () => {
  it('fails the run and names both places', async () => {
    const ran: string[] = []
    const { run } = await bench.perform(async (ctx) => {
      await ctx.run('same', () => ran.push('first'))
      await ctx.run('same', () => ran.push('second'))
    })
    expect(run).toMatchObject({ status: 'failed', errorDetail: { code: 'DUPLICATE_STEP', name: 'DuplicateStepError' } })
    const places = run.error?.match(/steps\.test\.ts:\d+:\d+/g) ?? []
    expect(places).toHaveLength(2)
    expect(new Set(places).size).toBe(2)
    expect(run.error).toContain('"same"')
    expect(ran).toEqual(['first'])
  })

  it('is noticed in parallel and in loops', async () => {
    const { run } = await bench.perform((ctx) => Promise.all([1, 2].map((n) => ctx.run('each', () => n))))
    expect(run).toMatchObject({ status: 'failed', errorDetail: { code: 'DUPLICATE_STEP' } })
  })

  it('is noticed when the step was skipped', async () => {
    let twice = false
    const { durably, run, now } = await bench.perform(async (ctx) => {
      await ctx.run('a', () => {})
      if (twice) await ctx.run('a', () => {})
      throw new Error('again')
    })
    twice = true
    await durably.retry(run.id)
    await settled()
    expect(await now()).toMatchObject({ errorDetail: { code: 'DUPLICATE_STEP' } })
  })

  it('leaves the others their turn when the job catches it and calls again', async () => {
    let calls = 0
    const { durably, run, now } = await bench.perform(async (ctx) => {
      // Bounded, so that this test ends also when nobody else gets a turn.
      for (calls = 0; calls < 10_000; calls++) await ctx.run('poll', () => {}).catch(() => {})
    })
    expect(run).toMatchObject({ status: 'running' })
    expect(calls).toBeLessThan(200)
    await bench.clock.advance(10)
    expect(calls).toBeGreaterThan(10)
    await durably.cancel(run.id)
    await bench.clock.advance(5000)
    expect(await now()).toMatchObject({ status: 'cancelled' })
  })

  it('is told before the run is put away for what else it waits for', async () => {
    const { now } = await bench.perform((ctx) =>
      Promise.all([
        ctx.waitFor('approval'),
        (async () => {
          await ctx.run('same', () => {})
          await ctx.run('same', () => {}).catch(() => {})
          await ctx.run('same', () => {})
        })(),
      ]),
    )
    await bench.clock.advance(10)
    expect(await now()).toMatchObject({ status: 'failed', errorDetail: { code: 'DUPLICATE_STEP' } })
  })

  it('does not fail the run when nobody awaits it', async () => {
    const gate = createGate()
    const { now, events } = await bench.perform((ctx) => {
      for (let n = 0; n < 4; n++) void ctx.run('same', () => gate.opened)
    })
    gate.open()
    await bench.clock.advance(10)
    expect(await now()).toMatchObject({ status: 'completed' })
    expect(events.filter(({ type }) => type === 'step:unawaited')).toHaveLength(1)
  })

  it('counts for each execution by itself', async () => {
    const { run } = await bench.perform(async (ctx) => {
      await ctx.run('a', () => {})
    })
    expect(run.status).toBe('completed')
  })
})

describe('a step within a step', () => {
  it.each([
    ['at once', async (ctx: JobContext) => ctx.run('outer', () => ctx.run('inner', () => 1))],
    [
      'after an await',
      async (ctx: JobContext) =>
        ctx.run('outer', async () => {
          await Promise.resolve()
          return ctx.run('inner', () => 1)
        }),
    ],
    [
      'after another macrotask',
      async (ctx: JobContext) =>
        ctx.run('outer', async () => {
          await settled()
          return ctx.run('inner', () => 1)
        }),
    ],
  ])('is an error that names both, %s', async (_when, execute) => {
    const { now } = await bench.perform(execute)
    await settled()
    await settled()
    const run = await now()
    expect(run).toMatchObject({ status: 'failed', errorDetail: { code: 'NESTED_STEP', stepName: 'outer' } })
    expect(run.error).toMatch(/"inner".*"outer"/)
  })

  it('does not run its body', async () => {
    let ran = false
    await bench.perform((ctx) =>
      ctx.run('outer', async () => {
        await ctx
          .run('inner', () => {
            ran = true
          })
          .catch(() => {})
      }),
    )
    expect(ran).toBe(false)
  })

  it('is not seen where there is none: a step called when another one has settled', async () => {
    const { run } = await bench.perform(async (ctx) => {
      const a = await ctx.run('a', async () => Promise.resolve(1))
      return Promise.all([ctx.run('b', () => a + 1), ctx.run('a', () => 0).catch(() => 'duplicate')])
    })
    expect(run).toMatchObject({ status: 'completed', output: [2, 'duplicate'] })
  })
})

describe('a step that throws', () => {
  it('fails the run at once', async () => {
    const ran: string[] = []
    const { run, durably } = await bench.perform(async (ctx) => {
      await ctx.run('good', () => ran.push('good'))
      await ctx.run('bad', () => {
        throw new RangeError('too far')
      })
      await ctx.run('never', () => ran.push('never'))
    })
    expect(run).toMatchObject({
      status: 'failed',
      error: 'too far',
      errorDetail: { name: 'RangeError', stepName: 'bad' },
      currentStepIndex: 1,
    })
    expect(ran).toEqual(['good'])
    expect((await durably.getSteps(run.id)).map(({ name, status }) => [name, status])).toEqual([
      ['good', 'completed'],
      ['bad', 'failed'],
    ])
  })

  it('does not fail the run when the job catches it', async () => {
    const { run } = await bench.perform(async (ctx) => {
      try {
        await ctx.run('bad', () => Promise.reject(new RangeError('too far')))
        return 'went through'
      } catch (error) {
        return `caught ${(error as Error).message}`
      }
    })
    expect(run).toMatchObject({ status: 'completed', output: 'caught too far', error: null })
  })

  it('throws again, the same error and without its body, when the same attempt goes on after a crash', async () => {
    const ran: string[] = []
    const caught: unknown[] = []
    const body: JobBody = async (ctx) => {
      await ctx
        .run('bad', () => {
          ran.push('bad')
          throw Object.assign(new RangeError('too far'), { code: 'E_FAR' })
        })
        .catch((error: unknown) => caught.push(error))
    }
    const { now } = await crashAndGoOn(async (ctx) => {
      await body(ctx)
      await ctx.run('crash', forever)
    }, body)
    expect(ran).toEqual(['bad'])
    expect(caught[1]).toBeInstanceOf(StepError)
    expect(caught[1]).toEqual(caught[0])
    expect(caught[1]).toMatchObject({
      name: 'StepError',
      message: 'too far',
      code: 'E_FAR',
      stepName: 'bad',
      originalName: 'RangeError',
    })
    expect(await now()).toMatchObject({ status: 'completed' })
  })

  it('fails the run with the stored error when nobody catches that one', async () => {
    const { now, events } = await crashAndGoOn(
      async (ctx) => {
        await ctx.run('bad', () => Promise.reject(new Error('broken'))).catch(() => {})
        await ctx.run('crash', forever)
      },
      (ctx) => ctx.run('bad', () => 'fine'),
    )
    expect(await now()).toMatchObject({ status: 'failed', error: 'broken', errorDetail: { stepName: 'bad' } })
    expect(events.find(({ type }) => type === 'run:fail')).toMatchObject({ failedStepName: 'bad' })
  })

  it('runs again in a new attempt', async () => {
    const attempts: number[] = []
    const { durably, run, now } = await bench.perform((ctx) =>
      ctx.run('bad', ({ attempt }) => {
        attempts.push(attempt)
        if (attempt < 3) throw new Error('not yet')
        return 'at last'
      }),
    )
    for (let tries = 0; tries < 2; tries++) {
      await durably.retry(run.id)
      await settled()
    }
    expect(attempts).toEqual([1, 2, 3])
    expect(await now()).toMatchObject({ status: 'completed', output: 'at last', attempt: 3 })
  })

  it('shows ctx.attempt, which crashes do not count', async () => {
    const attempts: number[] = []
    const { second, run } = await crashAndGoOn(
      async (ctx) => {
        attempts.push(ctx.attempt)
        await forever()
      },
      (ctx) => {
        attempts.push(ctx.attempt)
        throw new Error('no')
      },
    )
    await second.retry(run.id)
    await settled()
    expect(attempts).toEqual([1, 1, 2])
  })

  it('is named when several fail together', async () => {
    const { run, events } = await bench.perform((ctx) =>
      Promise.all(['a', 'b', 'c'].map((name) => ctx.run(name, () => Promise.reject(new Error(`${name} failed`))))),
    )
    expect(run).toMatchObject({ status: 'failed', error: 'a failed', errorDetail: { stepName: 'a' } })
    expect(events.find(({ type }) => type === 'run:fail')).toMatchObject({ failedStepName: 'a' })
  })

  it('leaves no failed step behind an error that is the job’s own', async () => {
    const { events } = await bench.perform(async (ctx) => {
      await ctx.run('bad', () => Promise.reject(new Error('inner'))).catch(() => {})
      throw new Error('outer')
    })
    expect(events.find(({ type }) => type === 'run:fail')).toMatchObject({ error: 'outer', failedStepName: null })
  })
})

describe('when the job throws', () => {
  it('aborts the bodies in flight and records what finishes within the grace', async () => {
    const reasons: unknown[] = []
    let broken = true
    const ran: string[] = []
    const { durably, run, now } = await bench.perform(async (ctx) => {
      const polite = ctx.run('polite', async ({ signal }) => {
        ran.push('polite')
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
        reasons.push(signal.reason)
        return 'saved'
      })
      if (broken) throw new Error('no')
      return polite
    })
    expect(run).toMatchObject({ status: 'failed', error: 'no' })
    expect(reasons).toMatchObject([{ code: 'ENDED' }])
    expect(await durably.getSteps(run.id)).toMatchObject([{ name: 'polite', status: 'completed', output: 'saved' }])
    broken = false
    await durably.retry(run.id)
    await settled()
    expect(ran).toEqual(['polite'])
    expect(await now()).toMatchObject({ status: 'completed', output: 'saved' })
  })

  it('waits 5 s for a body that ignores the signal, not longer', async () => {
    const { run, now } = await bench.perform(async (ctx) => {
      void ctx.run('deaf', forever)
      throw new Error('no')
    })
    expect(run.status).toBe('running')
    await bench.clock.advance(4999)
    expect(await now()).toMatchObject({ status: 'running' })
    await bench.clock.advance(1)
    expect(await now()).toMatchObject({ status: 'failed', error: 'no' })
  })

  it('starts nothing any more', async () => {
    const ran: string[] = []
    let late: Promise<unknown> = Promise.resolve()
    const { run } = await bench.perform(async (ctx) => {
      void ctx
        .run('bad', () => Promise.reject(new Error('no')))
        .catch(async () => {
          await settled()
          late = ctx.run('late', () => ran.push('late'))
        })
      await ctx.run('worse', () => Promise.reject(new Error('no')))
    })
    await settled()
    await settled()
    expect(run.status).toBe('failed')
    expect(ran).toEqual([])
    expect(await Promise.race([late.then(() => 'settled'), settled().then(() => 'open')])).toBe('open')
  })
})

describe('steps that nobody awaits', () => {
  it('are waited for when the job returns, and reported', async () => {
    const gate = createGate()
    const { run, events, now, durably } = await bench.perform(async (ctx) => {
      void ctx.run('loose', async () => {
        await gate.opened
        return 'done'
      })
      return 'returned'
    })
    expect(run.status).toBe('running')
    expect(events.filter(({ type }) => type === 'step:unawaited')).toMatchObject([
      { runId: run.id, jobName: 'job', stepName: 'loose', stepIndex: 0 },
    ])
    gate.open()
    await settled()
    expect(await now()).toMatchObject({ status: 'completed', output: 'returned', currentStepIndex: 1 })
    expect(await durably.getSteps(run.id)).toMatchObject([{ name: 'loose', output: 'done' }])
  })

  it('fail the run when they fail', async () => {
    const gate = createGate()
    const { now, run } = await bench.perform(async (ctx) => {
      void ctx.run('loose', () => gate.opened)
      return 'returned'
    })
    gate.fail(new Error('too late'))
    await settled()
    expect(run.status).toBe('running')
    expect(await now()).toMatchObject({ status: 'failed', error: 'too late', errorDetail: { stepName: 'loose' } })
  })

  it('may start further steps', async () => {
    const { run } = await bench.perform((ctx) => {
      void ctx.run('a', () => {}).then(() => ctx.run('b', () => {}))
      return 'returned'
    })
    expect(run).toMatchObject({ status: 'completed', currentStepIndex: 2 })
  })

  it('are not reported when the job awaited them', async () => {
    const { events } = await bench.perform((ctx) => Promise.all([ctx.run('a', () => 1), ctx.run('b', () => 2)]))
    expect(events.filter(({ type }) => type === 'step:unawaited')).toEqual([])
  })

  it('do nothing after the run has ended', async () => {
    let leaked: JobContext | undefined
    let ran = false
    const { run, durably } = await bench.perform((ctx) => {
      leaked = ctx
    })
    const call = leaked?.run('late', () => {
      ran = true
    })
    leaked?.progress(1)
    await bench.clock.advance(1000)
    expect(ran).toBe(false)
    expect(await Promise.race([call?.then(() => 'settled'), settled().then(() => 'open')])).toBe('open')
    expect(await durably.getSteps(run.id)).toEqual([])
    expect(await durably.getRun(run.id)).toMatchObject({ status: 'completed', progress: null })
  })
})

describe('once', () => {
  it('records the start before the body runs', async () => {
    const gate = createGate()
    const { durably, run } = await bench.perform((ctx) => ctx.run('pay', { once: true }, () => gate.opened))
    expect(await durably.getSteps(run.id)).toMatchObject([{ name: 'pay', status: 'started', completedAt: null }])
    gate.open()
    await settled()
    expect(await durably.getSteps(run.id)).toMatchObject([{ name: 'pay', status: 'completed' }])
  })

  it('does not run again after a crash: the job gets an InterruptedError', async () => {
    let bodies = 0
    const { now, second, run } = await crashAndGoOn((ctx) =>
      ctx.run('pay', { once: true }, () => {
        bodies += 1
        return forever()
      }),
    )
    expect(bodies).toBe(1)
    expect(await now()).toMatchObject({
      status: 'failed',
      errorDetail: { code: 'INTERRUPTED', name: 'InterruptedError', stepName: 'pay' },
    })
    expect(await second.getSteps(run.id)).toMatchObject([{ name: 'pay', status: 'failed' }])
  })

  it('lets the job decide what the InterruptedError means', async () => {
    const { now } = await crashAndGoOn(async (ctx) => {
      try {
        return await ctx.run('pay', { once: true }, forever)
      } catch (error) {
        return ctx.run('ask', () => (error as { code: string }).code)
      }
    })
    expect(await now()).toMatchObject({ status: 'completed', output: 'INTERRUPTED' })
  })

  it('gives the recorded value when it had completed', async () => {
    let bodies = 0
    const { now } = await crashAndGoOn(
      async (ctx) => {
        await ctx.run('pay', { once: true }, () => ++bodies)
        await forever()
      },
      (ctx) => ctx.run('pay', { once: true }, () => ++bodies),
    )
    expect(await now()).toMatchObject({ status: 'completed', output: 1 })
    expect(bodies).toBe(1)
  })

  it('does not start its body when the answer to the start says that the run is cancelled', async () => {
    let ran = false
    let runId = ''
    const storage = {
      ...bench.storage,
      async commit(...[commits]: Parameters<typeof bench.storage.commit>) {
        if (commits.some(({ steps }) => steps.some(({ status }) => status === 'started'))) {
          await bench.storage.command({ kind: 'cancel', runId, events: { cancelled: [], requested: [] } })
        }
        return bench.storage.commit(commits)
      },
    }
    const { now } = await bench.perform(
      (ctx) => {
        runId = ctx.runId
        return ctx.run('pay', { once: true }, () => {
          ran = true
        })
      },
      { storage },
    )
    await bench.clock.advance(6000)
    expect(ran).toBe(false)
    expect(await now()).toMatchObject({ status: 'cancelled' })
  })
})

describe('save', () => {
  it('gives the checkpoint to the next start after a crash', async () => {
    const seen: unknown[] = []
    const first = createGate()
    const body = (again: boolean) => (ctx: JobContext) =>
      ctx.run('walk', async ({ checkpoint, save }: StepTools) => {
        seen.push(checkpoint)
        if (again) return 'arrived'
        await save({ at: 1 })
        await save({ at: 2 })
        first.open()
        return forever()
      })
    const { now } = await crashAndGoOn(body(false), body(true))
    await first.opened
    expect(seen).toEqual([undefined, { at: 2 }])
    expect(await now()).toMatchObject({ status: 'completed', output: 'arrived' })
  })

  it('gives it to the next attempt after a failure', async () => {
    const seen: unknown[] = []
    const { durably, run, now } = await bench.perform((ctx) =>
      ctx.run('walk', async ({ checkpoint, save, attempt }) => {
        seen.push(checkpoint)
        await save(attempt * 10)
        if (attempt < 2) throw new Error('tired')
        return 'arrived'
      }),
    )
    await durably.retry(run.id)
    await settled()
    expect(seen).toEqual([undefined, 10])
    expect(await now()).toMatchObject({ status: 'completed' })
  })

  it('is there to be read while the body runs', async () => {
    const gate = createGate()
    const { durably, run } = await bench.perform((ctx) =>
      ctx.run('walk', async ({ save }) => {
        await save({ at: 1 })
        await gate.opened
      }),
    )
    expect(await durably.getSteps(run.id)).toMatchObject([{ status: 'started', checkpoint: { at: 1 } }])
    gate.open()
  })

  it('is not an outcome: the body runs again', async () => {
    let bodies = 0
    const { now } = await crashAndGoOn(
      (ctx) =>
        ctx.run('walk', async ({ save }) => {
          bodies += 1
          await save(1)
          return forever()
        }),
      (ctx) => ctx.run('walk', () => ++bodies),
    )
    expect(bodies).toBe(2)
    expect(await now()).toMatchObject({ status: 'completed', output: 2 })
  })

  it('does nothing when the step has ended: what is completed stays completed', async () => {
    let late: StepTools['save'] | undefined
    const gate = createGate()
    const { durably, run } = await bench.perform(async (ctx) => {
      await ctx.run('walk', ({ save }) => {
        late = save
        return 'arrived'
      })
      await gate.opened
    })
    await late?.('too late').catch(() => {})
    expect(await durably.getSteps(run.id)).toMatchObject([{ name: 'walk', status: 'completed', output: 'arrived' }])
    gate.open()
    await settled()
    expect(await durably.getRun(run.id)).toMatchObject({ status: 'completed', currentStepIndex: 1 })
  })

  it('need not be awaited', async () => {
    const { run, durably } = await bench.perform((ctx) =>
      ctx.run('walk', ({ save }) => {
        void save(1)
        void save(2)
        return 'arrived'
      }),
    )
    expect(run).toMatchObject({ status: 'completed', output: 'arrived' })
    expect(await durably.getSteps(run.id)).toMatchObject([{ status: 'completed', output: 'arrived' }])
  })

  it('refuses what JSON would change, and keeps the checkpoint before', async () => {
    const { run, durably } = await bench.perform((ctx) =>
      ctx.run('walk', async ({ save }) => {
        await save({ good: true })
        await save({ bad: new Map() })
      }),
    )
    expect(run).toMatchObject({ status: 'failed', errorDetail: { code: 'SERIALIZATION', stepName: 'walk' } })
    expect(await durably.getSteps(run.id)).toMatchObject([{ checkpoint: { good: true } }])
  })
})

describe('the idempotency key of a step', () => {
  it('is the same in every start of this step of this run, and no other', async () => {
    const keys: Record<string, string[]> = { a: [], b: [] }
    const note = (name: string) => (step: StepTools) => void keys[name]?.push(step.idempotencyKey)
    const { second, run } = await crashAndGoOn(
      async (ctx) => {
        await ctx.run('a', (step) => {
          note('a')(step)
          return forever()
        })
      },
      async (ctx) => {
        await ctx.run('b', note('b'))
        await ctx.run('a', (step) => {
          note('a')(step)
          if (ctx.attempt === 1) throw new Error('again')
        })
      },
    )
    await second.retry(run.id)
    await settled()
    expect(keys['a']).toHaveLength(3)
    expect(new Set(keys['a']).size).toBe(1)
    expect(keys['b']).toHaveLength(1)
    expect(keys['b']?.[0]).not.toBe(keys['a']?.[0])
    expect(keys['a']?.[0]).toContain(run.id)
  })

  it('fits a header whatever the name, and two names never have one', async () => {
    const names = [
      'charge',
      'save org_1/ada',
      'save%20org_1/ada',
      'a\r\nb: c',
      'メール',
      '🧾',
      '\t',
      '%',
      '~!',
      '漢'.repeat(512),
    ]
    const keys: string[] = []
    const { run } = await bench.perform(async (ctx) => {
      for (const name of names) {
        await ctx.run(name, (step) => void keys.push(step.idempotencyKey))
      }
    })
    expect(run.status).toBe('completed')
    expect(keys.slice(0, 3)).toEqual([`${run.id}/charge`, `${run.id}/save%20org_1/ada`, `${run.id}/save%2520org_1/ada`])
    for (const key of keys) {
      expect(key).toMatch(/^[\x21-\x7e]+$/)
      expect(new Headers({ 'idempotency-key': key }).get('idempotency-key')).toBe(key)
    }
    expect(new Set(keys).size).toBe(names.length)
    expect(keys.map((key) => decodeURIComponent(key))).toEqual(names.map((name) => `${run.id}/${name}`))
    expect(Math.max(...keys.map((key) => key.length))).toBeLessThan(5000)
  })
})
