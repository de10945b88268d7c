import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { defineJob, type JobContext, type Plugin, type Storage } from '../index'
import { settled } from '../testing/fake-clock'
import { anything, type Bench, createBench, createGate, found, recordEvents } from '../testing/test-bench'

let bench: Bench

beforeEach(() => {
  bench = createBench()
})

afterEach(() => bench.close())

/** Runs the job function again as soon as it has failed. */
const again: Plugin = {
  name: 'again',
  async aroundRun({ signal }, next) {
    for (let tries = 1; ; tries++) {
      try {
        return await next()
      } catch (error) {
        if (tries === 3 || signal.aborted) throw error
      }
    }
  },
}

async function perform(execute: (ctx: JobContext) => unknown, storage: Storage = bench.storage) {
  const durably = bench.open({ storage, concurrency: 2 }).use(again)
  const events = recordEvents(durably)
  const job = durably.defineJob({ name: 'job', input: anything }, execute)
  durably.start()
  await settled()
  const { id } = await job.trigger({})
  await quiet()
  return { durably, id, events, now: async () => found(await durably.getRun(id)) }
}

async function quiet(): Promise<void> {
  for (let round = 0; round < 3; round++) await bench.clock.advance(0)
}

function failsFirst() {
  let tries = 0
  return (ctx: JobContext) =>
    ctx.run('flaky', () => {
      tries += 1
      if (tries === 1) throw new Error('not yet')
      return tries
    })
}

describe('a call that an earlier pass has left open', () => {
  it('is the same wait, which takes one signal', async () => {
    const flaky = failsFirst()
    const { durably, id, now } = await perform((ctx) => Promise.all([ctx.waitFor('approval'), flaky(ctx)]))
    expect(await now()).toMatchObject({ status: 'pending', waitingFor: { steps: ['approval'] } })
    await durably.signal(id, 'approval', 'first')
    await durably.signal(id, 'approval', 'second')
    await quiet()
    expect(await now()).toMatchObject({ status: 'completed', output: ['first', 2] })
    expect((await durably.getSteps(id)).filter(({ name }) => name === 'approval')).toHaveLength(1)
    expect(await found(bench.storage.signals).getUnread(id)).toHaveLength(1)
  })

  it('is the same wait also while it is being recorded, or its signal used up', async () => {
    const flaky = failsFirst()
    let slowly = false
    const storage: Storage = {
      ...bench.storage,
      async commit(commits) {
        if (slowly) await new Promise<void>((resolve) => bench.clock.schedule(100, resolve))
        return bench.storage.commit(commits)
      },
    }
    const { durably, id, now } = await perform(async (ctx) => {
      slowly = true
      return Promise.all([ctx.waitFor('approval'), flaky(ctx), ctx.sleep('short', 50).then(() => 'awake')])
    }, storage)
    await durably.signal(id, 'approval', 'yes')
    await bench.clock.advance(5000)
    expect(await now()).toMatchObject({ status: 'completed', output: ['yes', 2, 'awake'] })
    const waits = (await durably.getSteps(id)).filter(({ kind }) => kind !== 'run')
    expect(waits.map(({ name, status }) => [name, status])).toEqual([
      ['approval', 'completed'],
      ['short', 'completed'],
    ])
  })

  it('is the same child', async () => {
    const flaky = failsFirst()
    const gate = createGate()
    const input = {
      '~standard': { ...anything['~standard'], validate: (value: unknown) => gate.opened.then(() => ({ value })) },
    }
    const child = defineJob({ name: 'child', input }, () => 'output')
    const { durably, now } = await perform(async (ctx) => {
      const [run] = await Promise.all([ctx.trigger('start', child, {}), flaky(ctx)])
      return ctx.wait('end', run)
    })
    durably.register({ child })
    gate.open()
    await quiet()
    expect(await now()).toMatchObject({ status: 'completed', output: 'output' })
    expect(await durably.getRuns({ jobName: 'child' })).toHaveLength(1)
  })

  it('does not keep the run from being put away, when nothing else is called', async () => {
    let passes = 0
    const { now } = await perform(async (ctx) => {
      passes += 1
      const wait = ctx.waitFor('approval')
      if (passes === 1) throw new Error('not yet')
      return wait
    })
    expect(await now()).toMatchObject({ status: 'pending', waitingFor: { steps: ['approval'] } })
  })

  it('does not put a pass away that has not asked for it', async () => {
    let passes = 0
    const beside = () => new Promise<void>((resolve) => bench.clock.schedule(500, resolve))
    const { now, events } = await perform(async (ctx) => {
      passes += 1
      if (passes === 1) void ctx.waitFor('approval')
      await ctx.run('step', () => 1)
      if (passes === 1) throw new Error('not yet')
      await beside()
      return 'went on'
    })
    await bench.clock.advance(1000)
    expect(await now()).toMatchObject({ status: 'completed', output: 'went on' })
    expect(events.filter(({ type }) => type === 'run:suspend')).toEqual([])
  })

  it('does not keep a cancel from the pass that is going on', async () => {
    let passes = 0
    const caught: unknown[] = []
    const { durably, id } = await perform(async (ctx) => {
      passes += 1
      if (passes === 1) void ctx.run('deaf', () => new Promise(() => {}))
      if (passes === 1) throw new Error('not yet')
      await ctx.waitFor('approval').catch((error: unknown) => caught.push(error))
    })
    await durably.cancel(id)
    await settled()
    expect(caught).toMatchObject([{ code: 'CANCELLED' }])
    await bench.clock.advance(6000)
    expect(await durably.getRun(id)).toMatchObject({ status: 'cancelled' })
  })

  it('has names of its own in each pass, two at a time included', async () => {
    const durably = bench.open()
    durably.use({ name: 'both', aroundRun: async (_run, next) => Promise.all([next(), next()]) })
    let bodies = 0
    const job = durably.defineJob({ name: 'job', input: anything }, async (ctx) => {
      const value = await ctx.run('one', () => {
        bodies += 1
        return bodies
      })
      return ctx.run('two', () => value + 1)
    })
    durably.start()
    const { id } = await job.trigger({})
    await settled()
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed', output: [2, 2] })
    expect(bodies).toBe(1)
  })
})

describe('a call that two passes wait for', () => {
  it.each(['first', 'second'] as const)('lets the run be put away when the %s of them has settled', async (settles) => {
    const durably = bench.open()
    durably.use({
      name: 'both',
      async aroundRun(_run, next) {
        const passes = [next(), next()]
        return passes[settles === 'first' ? 1 : 0]
      },
    })
    let passes = 0
    const job = durably.defineJob({ name: 'job', input: anything }, async (ctx) => {
      passes += 1
      const isSettling = passes % 2 === (settles === 'first' ? 1 : 0)
      const wait = ctx.waitFor('approval')
      return isSettling ? 'settled' : wait
    })
    durably.start()
    const { id } = await job.trigger({})
    await quiet()
    expect(await durably.getRun(id)).toMatchObject({ status: 'pending', waitingFor: { steps: ['approval'] } })
    await durably.signal(id, 'approval', 'yes')
    await quiet()
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed', output: 'yes' })
  })
})

describe('a job that has returned is not put away', () => {
  const race = (ctx: JobContext) => Promise.race([ctx.waitFor('never'), ctx.run('quick', () => 'in time')])
  const later = () => new Promise<void>((resolve) => bench.clock.schedule(500, resolve))

  it('while its output is checked', async () => {
    const output = {
      '~standard': { ...anything['~standard'], validate: (value: unknown) => later().then(() => ({ value })) },
    }
    const durably = bench.open()
    const job = durably.defineJob({ name: 'job', input: anything, output }, race)
    durably.start()
    const { id } = await job.trigger({})
    await bench.clock.advance(1000)
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed', output: 'in time' })
  })

  it('while a plugin goes on after it', async () => {
    const durably = bench.open()
    const suspended = recordEvents(durably, ['run:suspend'])
    durably.use({
      name: 'slow',
      async aroundRun(_run, next) {
        const value = await next()
        await later()
        return value
      },
    })
    const job = durably.defineJob({ name: 'job', input: anything }, race)
    durably.start()
    const { id } = await job.trigger({})
    await bench.clock.advance(1000)
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed', output: 'in time' })
    expect(suspended).toEqual([])
  })

  it('but is again when a plugin has it run anew', async () => {
    let passes = 0
    const durably = bench.open()
    durably.use({
      name: 'slow',
      async aroundRun(_run, next) {
        await next()
        await later()
        return next()
      },
    })
    const job = durably.defineJob({ name: 'job', input: anything }, (ctx) => {
      passes += 1
      return passes % 2 === 1 ? race(ctx) : ctx.waitFor('never')
    })
    durably.start()
    const { id } = await job.trigger({})
    await bench.clock.advance(1000)
    expect(await durably.getRun(id)).toMatchObject({ status: 'pending', waitingFor: { steps: ['never'] } })
    await durably.signal(id, 'never', 'after all')
    await bench.clock.advance(1000)
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed', output: 'after all' })
  })
})
