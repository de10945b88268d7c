import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { defineJob, type JobContext, type StandardSchema, type Storage } from '../index'
import { settled } from '../testing/fake-clock'
import { anything, type Bench, createBench, createMortal, found, recordEvents } from '../testing/test-bench'

let bench: Bench

beforeEach(() => {
  bench = createBench()
})

afterEach(() => bench.close())

/** Everything that needs no time, the look for waits included. */
async function quiet(): Promise<void> {
  await settled()
  await bench.clock.advance(0)
}

async function perform(execute: (ctx: JobContext) => unknown) {
  const durably = bench.open()
  const events = recordEvents(durably)
  const job = durably.defineJob({ name: 'job', input: anything }, execute)
  durably.start()
  await settled()
  const { id } = await job.trigger({})
  await quiet()
  return { durably, id, job, events, now: async () => found(await durably.getRun(id)) }
}

describe('ctx.sleep', () => {
  it('lets the run wait in the database, and goes on when it is time', async () => {
    const { now, durably, id, events } = await perform(async (ctx) => {
      await ctx.sleep('an hour', 3_600_000)
      return 'awake'
    })
    expect(await now()).toMatchObject({ status: 'pending', ownerId: null, availableAt: '2030-01-01T01:00:00.000Z' })
    expect(await durably.explain(id)).toContain('waits for "an hour"')
    await bench.clock.advance(3_599_999)
    expect(await now()).toMatchObject({ status: 'pending' })
    await bench.clock.advance(1)
    expect(await now()).toMatchObject({ status: 'completed', output: 'awake', attempt: 1 })
    expect(await durably.getSteps(id)).toMatchObject([{ name: 'an hour', kind: 'sleep', status: 'completed' }])
    expect(events.filter(({ type }) => type === 'run:suspend')).toMatchObject([
      { waitingFor: { kind: 'steps', steps: ['an hour'] } },
    ])
  })

  it('ends at the instant it was given, and at once when that has passed', async () => {
    const { now } = await perform(async (ctx) => {
      await ctx.sleep('past', new Date('2029-01-01'))
      await ctx.sleep('until', new Date('2030-01-01T00:00:10Z'))
    })
    await bench.clock.advance(9999)
    expect(await now()).toMatchObject({ status: 'pending' })
    await bench.clock.advance(1)
    expect(await now()).toMatchObject({ status: 'completed' })
  })

  it('is not begun anew by another worker', async () => {
    const mortal = createMortal(bench.storage)
    const execute = async (ctx: JobContext) => {
      await Promise.all([ctx.sleep('a minute', 60_000), ctx.run('blocks', () => new Promise(() => {}))])
    }
    const first = bench.open({ storage: mortal.storage })
    const job = first.defineJob({ name: 'job', input: anything }, execute)
    first.start()
    await settled()
    const { id } = await job.trigger({})
    await quiet()
    await bench.clock.advance(20_000)
    mortal.kill()
    const second = bench.open()
    let awake = false
    second.defineJob({ name: 'job', input: anything }, async (ctx) => {
      await ctx.sleep('a minute', 60_000)
      awake = true
    })
    second.start()
    await bench.clock.advance(35_000)
    expect(awake).toBe(false)
    await bench.clock.advance(6000)
    expect(awake).toBe(true)
    expect(await second.getRun(id)).toMatchObject({ status: 'completed' })
  })

  it('does not end early because its claim took long to arrive', async () => {
    const mortal = createMortal(bench.storage)
    const storage: Storage = {
      ...bench.storage,
      async claim(params) {
        await new Promise<void>((resolve) => bench.clock.schedule(400, resolve))
        return bench.storage.claim(params)
      },
    }
    const ends: string[] = []
    const define = { name: 'job', input: anything }
    const execute = async (ctx: JobContext) => {
      const blocks = ctx.run('blocks', () => new Promise(() => {}))
      await ctx.sleep('a minute', 60_000)
      ends.push(new Date(bench.clock.now()).toISOString())
      await blocks
    }
    const first = bench.open({ storage: mortal.storage, workerId: 'first' })
    const job = first.defineJob(define, execute)
    first.start()
    await settled()
    await job.trigger({})
    await quiet()
    mortal.kill()
    const second = bench.open({ storage })
    second.defineJob(define, execute)
    await second.recover({ workerId: 'first' })
    second.start()
    await bench.clock.advance(59_999)
    expect(ends).toEqual([])
    // The answer may have taken as long as the question.
    await bench.clock.advance(500)
    expect(ends).toHaveLength(1)
  })

  it('ends here while something else of the run is going on', async () => {
    const order: string[] = []
    const { now, events } = await perform(async (ctx) => {
      await Promise.all([
        ctx.sleep('short', 1000).then(() => ctx.run('after', () => void order.push('after'))),
        ctx.run('long', async () => {
          await new Promise<void>((resolve) => bench.clock.schedule(5000, resolve))
          order.push('long')
        }),
      ])
    })
    await bench.clock.advance(5000)
    expect(order).toEqual(['after', 'long'])
    expect(await now()).toMatchObject({ status: 'completed' })
    expect(events.some(({ type }) => type === 'run:suspend')).toBe(false)
  })

  it('can lose a race', async () => {
    const { now } = await perform((ctx) =>
      Promise.race([ctx.sleep('too long', 10_000).then(() => 'late'), ctx.run('quick', () => 'in time')]),
    )
    expect(await now()).toMatchObject({ status: 'completed', output: 'in time' })
  })

  it('is cancelled at once', async () => {
    const { durably, id, now } = await perform((ctx) => ctx.sleep('long', 10_000))
    await durably.cancel(id)
    expect(await now()).toMatchObject({ status: 'cancelled' })
  })

  it.each([-1, Number.NaN, Number.MAX_VALUE, new Date('nonsense')])('is refused for %s', async (until) => {
    const { now } = await perform((ctx) => ctx.sleep('odd', until))
    expect(await now()).toMatchObject({ status: 'failed', error: expect.stringContaining('ctx.sleep("odd")') })
  })
})

describe('ctx.waitFor', () => {
  const approve = async (ctx: JobContext) => ctx.waitFor('approval')

  it('gets a signal that comes while it waits', async () => {
    const { durably, id, now } = await perform(approve)
    expect(await now()).toMatchObject({ status: 'pending', availableAt: null })
    expect(await durably.signal(id, 'approval', { by: 'ada' })).toEqual({ deduplicated: false })
    await quiet()
    expect(await now()).toMatchObject({ status: 'completed', output: { by: 'ada' } })
  })

  it('gets one that came before, once, in the order of arrival', async () => {
    const { durably, id, now } = await perform(async (ctx) => {
      await ctx.sleep('first', 1000)
      const one = await ctx.waitFor('one', { signal: 'message' })
      const two = await ctx.waitFor('two', { signal: 'message' })
      return [one, two]
    })
    await durably.signal(id, 'message', 1, { dedupeKey: 'a' })
    await durably.signal(id, 'message', 2, { dedupeKey: 'b' })
    expect(await durably.signal(id, 'message', 3, { dedupeKey: 'a' })).toEqual({ deduplicated: true })
    await bench.clock.advance(1000)
    expect(await now()).toMatchObject({ status: 'completed', output: [1, 2] })
  })

  it('takes a repetition for one, after the end of the run too', async () => {
    const { durably, id, now } = await perform((ctx) => ctx.waitFor('go'))
    await durably.signal(id, 'go', 1, { dedupeKey: 'the button' })
    await quiet()
    expect(await now()).toMatchObject({ status: 'completed', output: 1 })
    expect(await durably.signal(id, 'go', 1, { dedupeKey: 'the button' })).toEqual({ deduplicated: true })
    await expect(durably.signal(id, 'go', 1, { dedupeKey: 'other' })).rejects.toMatchObject({ code: 'CONFLICT' })
    await expect(durably.signal(id, 'go', 1)).rejects.toMatchObject({ code: 'CONFLICT' })
  })

  it('gives each of two waits its own', async () => {
    const { durably, id, now } = await perform((ctx) =>
      Promise.all([ctx.waitFor('a', { signal: 'message' }), ctx.waitFor('b', { signal: 'message' })]),
    )
    await durably.signal(id, 'message', 1)
    await quiet()
    expect(await now()).toMatchObject({ status: 'pending' })
    await durably.signal(id, 'message', 2)
    await quiet()
    const { output } = await now()
    expect([...(output as number[])].sort()).toEqual([1, 2])
  })

  it('gets one while something else of the run is going on', async () => {
    const { durably, id, now } = await perform((ctx) =>
      Promise.race([ctx.waitFor('approval'), ctx.run('long', () => new Promise(() => {}))]).then((value) =>
        ctx.run('next', () => value),
      ),
    )
    await durably.signal(id, 'approval', 'yes')
    await settled()
    expect((await durably.getSteps(id)).map(({ name }) => name)).toContain('next')
    expect(await now()).toMatchObject({ status: 'running' })
  })

  it('fails when its time is over, and the job may catch that, also after a crash', async () => {
    const { now, durably, id } = await perform(async (ctx) => {
      const answer = await ctx.waitFor('approval', { timeout: 1000 }).catch((error: Error) => error.message)
      await ctx.sleep('later', 1000)
      return answer
    })
    await bench.clock.advance(2000)
    expect(await now()).toMatchObject({ status: 'completed', output: 'No signal "approval" came within 1000 ms.' })
    expect(await durably.getSteps(id)).toMatchObject([{ status: 'failed' }, { status: 'completed' }])
  })

  it('uses up what its schema refuses, and fails', async () => {
    const schema: StandardSchema<unknown, number> = {
      '~standard': {
        version: 1,
        vendor: 'test',
        validate: (value) =>
          typeof value === 'number' ? { value: value + 1 } : { issues: [{ message: 'no number' }] },
      },
    }
    const { durably, id, now } = await perform(async (ctx) => {
      const refused = await ctx.waitFor('first', { schema, signal: 'count' }).catch((error: Error) => error.message)
      return [refused, await ctx.waitFor('second', { schema, signal: 'count' })]
    })
    await durably.signal(id, 'count', 'three')
    await durably.signal(id, 'count', 3)
    await quiet()
    expect(await now()).toMatchObject({
      status: 'completed',
      output: [expect.stringContaining('no number'), 4],
    })
  })

  it('cannot be signalled when the run has ended, or is not there', async () => {
    const { durably, id } = await perform(() => 1)
    await expect(durably.signal(id, 'approval')).rejects.toMatchObject({ code: 'CONFLICT' })
    await expect(durably.signal('nobody', 'approval')).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })
})

describe('ctx.trigger and ctx.wait', () => {
  async function family(child: (ctx: JobContext, payload: unknown) => unknown, options: { concurrency?: number } = {}) {
    const durably = bench.open(options)
    const childJob = defineJob({ name: 'child', input: anything }, child)
    durably.register({ childJob })
    const parent = durably.defineJob({ name: 'parent', input: anything }, async (ctx) => {
      const run = await ctx.trigger('start', childJob, 20)
      return { child: run.id, output: await ctx.wait('result', run) }
    })
    durably.start()
    await settled()
    const { id } = await parent.trigger({})
    await quiet()
    await quiet()
    return { durably, id, now: async () => found(await durably.getRun(id)) }
  }

  it('hand the output of the child over, with one slot for both', async () => {
    const { now, durably, id } = await family((_ctx, payload) => Number(payload) + 1)
    await quiet()
    expect(await now()).toMatchObject({ status: 'completed', output: { output: 21 } })
    const [child] = await durably.getRuns({ jobName: 'child' })
    expect(child).toMatchObject({ parentRunId: id })
    expect(await durably.getSteps(id)).toMatchObject([{ kind: 'trigger' }, { kind: 'child' }])
  })

  it('tell several children apart that were created at once', async () => {
    const durably = bench.open({ concurrency: 4 })
    const child = defineJob({ name: 'child', input: anything }, (_ctx, payload) => payload)
    durably.register({ child })
    const parent = durably.defineJob({ name: 'parent', input: anything }, (ctx) => {
      const born = [1, 2, 3].map(async (n) => ctx.wait(`end ${n}`, await ctx.trigger(`start ${n}`, child, n)))
      return Promise.all(born)
    })
    durably.start()
    await settled()
    const { id } = await parent.trigger({})
    for (let round = 0; round < 4; round++) await quiet()
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed', output: [1, 2, 3] })
  })

  it('fail when the child fails', async () => {
    const { now } = await family(() => Promise.reject(new Error('boom')))
    await quiet()
    expect(await now()).toMatchObject({ status: 'failed', error: expect.stringContaining('boom') })
  })

  it('wait in the database for as long as the child takes', async () => {
    const { now, durably } = await family((ctx) => ctx.sleep('long', 3_600_000))
    expect(await now()).toMatchObject({ status: 'pending', waitingFor: { steps: ['result'] } })
    await bench.clock.advance(3_600_000)
    await quiet()
    expect(await now()).toMatchObject({ status: 'completed' })
    expect(await durably.counts()).toMatchObject({ completed: 2 })
  })

  it('hear that the child was cancelled', async () => {
    const { now, durably } = await family((ctx) => ctx.sleep('long', 3_600_000))
    const [child] = await durably.getRuns({ jobName: 'child' })
    await durably.cancel(found(child).id)
    await quiet()
    expect(await now()).toMatchObject({ status: 'failed', error: expect.stringContaining('was cancelled') })
  })

  it('get the run that has the key already, and wait for it with whoever else does', async () => {
    const durably = bench.open({ concurrency: 4 })
    const child = defineJob({ name: 'child', input: anything }, async (ctx, payload) => {
      await ctx.sleep('long', 60_000)
      return payload
    })
    const handle = durably.register({ child }).child
    const parent = durably.defineJob({ name: 'parent', input: anything }, async (ctx) => {
      const run = await ctx.trigger('start', child, 2, { idempotencyKey: 'key' })
      return [run.id, await ctx.wait('result', run)]
    })
    const first = await handle.trigger(1, { idempotencyKey: 'key' })
    durably.start()
    const parents = [await parent.trigger({}), await parent.trigger({})]
    await quiet()
    for (const { id } of parents) expect(await durably.getRun(id)).toMatchObject({ status: 'pending', ownerId: null })
    await bench.clock.advance(60_000)
    await quiet()
    for (const { id } of parents) {
      expect(await durably.getRun(id)).toMatchObject({ status: 'completed', output: [first.id, 1] })
    }
  })

  it('keep a run that has ended for the last that asked for it', async () => {
    const durably = bench.open({ concurrency: 4 })
    const child = defineJob({ name: 'child', input: anything }, (_ctx, payload) => payload)
    durably.register({ child })
    const parent = durably.defineJob({ name: 'parent', input: anything }, async (ctx, payload) => {
      const run = await ctx.trigger('start', child, 'output', { idempotencyKey: 'key' })
      await ctx.sleep('meanwhile', Number(payload))
      return ctx.wait('result', run)
    })
    durably.start()
    const [one, other] = [await parent.trigger(1000), await parent.trigger(2000)]
    await bench.clock.advance(1000)
    await quiet()
    expect(await durably.getRun(found(one).id)).toMatchObject({ status: 'completed', output: 'output' })
    await bench.clock.advance(500)
    expect(await durably.purge({ olderThan: 0 })).toBe(1)
    await bench.clock.advance(500)
    await quiet()
    expect(await durably.getRun(found(other).id)).toMatchObject({ status: 'completed', output: 'output' })
  })

  it('do not take a shutdown for an error while the storage is away', async () => {
    const away = { ...bench.storage, getRun: () => Promise.reject(new Error('The database is away.')) }
    const durably = bench.open({ storage: away })
    const child = defineJob({ name: 'child', input: anything }, () => 'output')
    durably.register({ child })
    const parent = durably.defineJob({ name: 'parent', input: anything }, async (ctx) => {
      const run = await ctx.trigger('start', child, {})
      return ctx.wait('result', run).catch(() => 'no output')
    })
    durably.start()
    await settled()
    const { id } = await parent.trigger({})
    await quiet()
    const stopped = durably.stop({ timeout: 0 })
    await bench.clock.advance(60_000)
    await stopped
    expect(await bench.storage.getRun(id)).toMatchObject({ status: 'pending', output: null, crashCount: 0 })
  })

  it.each(['wait', 'waitAll'] as const)('refuse the run itself, which its own key gives: ctx.%s', async (call) => {
    const durably = bench.open()
    const self = defineJob({ name: 'self', input: anything }, () => {})
    const job = durably.defineJob({ name: 'self', input: anything }, async (ctx) => {
      const run = await ctx.trigger('again', self, {}, { idempotencyKey: 'key' })
      return call === 'wait' ? ctx.wait('result', run) : ctx.waitAll('result', [run])
    })
    durably.start()
    const { id } = await job.trigger({}, { idempotencyKey: 'key' })
    await quiet()
    expect(await durably.getRun(id)).toMatchObject({
      status: 'failed',
      error: expect.stringContaining(`ctx.${call}("result") would wait for ever: ${id} is this very run`),
      errorDetail: { code: 'INVALID_OPTION' },
    })
  })

  it('refuse a run that is not a child', async () => {
    const { durably, id, now } = await perform((ctx) => ctx.sleep('long', 3_600_000))
    const other = durably.defineJob({ name: 'other', input: anything }, (ctx) => ctx.wait('it', { id, jobName: 'job' }))
    const run = await other.trigger({})
    await quiet()
    expect(await durably.getRun(run.id)).toMatchObject({
      status: 'failed',
      error: expect.stringMatching(/^ctx\.wait\("it"\) .* ctx\.trigger\(\)/),
    })
    expect(await now()).toMatchObject({ status: 'pending' })
  })

  it('refuse it among many by the names of those calls', async () => {
    const { durably, id } = await perform((ctx) => ctx.sleep('long', 3_600_000))
    const other = durably.defineJob({ name: 'other', input: anything }, (ctx) =>
      ctx.waitAll('them', [{ id, jobName: 'job' }]),
    )
    const run = await other.trigger({})
    await quiet()
    expect(await durably.getRun(run.id)).toMatchObject({
      status: 'failed',
      error: expect.stringMatching(/^ctx\.waitAll\("them"\) .* ctx\.triggerAll\(\) .*is not one of them/),
    })
  })
})

describe('a step that waits for its next try', () => {
  it('is put away again when something else has woken its run', async () => {
    const { durably, id, now } = await perform((ctx) =>
      ctx.run('failing', { retry: { maxAttempts: 3, delay: 60_000 } }, () => {
        throw new Error('503')
      }),
    )
    expect(await now()).toMatchObject({ status: 'pending' })
    const before = await now()
    await durably.signal(id, 'comment')
    await quiet()
    await quiet()
    expect(await now()).toMatchObject({ status: 'pending', ownerId: null, availableAt: before.availableAt })
    await bench.clock.advance(120_000)
    expect(await now()).toMatchObject({ status: 'failed', error: '503' })
  })
})

it('a run that waits for its next try and for a child goes on when the child has ended', async () => {
  const child = defineJob({ name: 'child', input: anything }, () => 'done')
  const { id, durably, now } = await perform((ctx) =>
    Promise.all([
      ctx.run('failing', { retry: { maxAttempts: 2, delay: 3_600_000 } }, ({ attempt }) => {
        if (attempt === 1) throw new Error('503')
      }),
      ctx.trigger('child', child, null).then((run) => ctx.wait('end', run)),
    ]),
  )
  durably.register({ child })
  durably.wake()
  await bench.clock.advance(5000)
  expect(await durably.getSteps(id)).toMatchObject([{}, {}, { name: 'child' }, { name: 'end', status: 'completed' }])
  expect(await now()).toMatchObject({ status: 'pending' })
})
