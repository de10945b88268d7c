import { describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { defineJob, PermanentError } from '../index'
import { createTestDurably } from './test-durably'

const DAY_MS = 24 * 3600 * 1000

const charge = defineJob({ name: 'charge', input: z.object({ amount: z.number() }) }, (ctx, { amount }) =>
  ctx.run('pay', (): string => {
    throw new Error(`${amount} would have been charged`)
  }),
)

const order = defineJob(
  { name: 'order', input: z.object({ id: z.string() }), output: z.object({ shipped: z.string(), paid: z.string() }) },
  async (ctx, { id }) => {
    const child = await ctx.trigger('begin to charge', charge, { amount: 3 })
    const paid = await ctx.wait('charged', child)
    await ctx.sleep('two weeks', 14 * DAY_MS)
    const { by } = await ctx.waitFor('approval', { schema: z.object({ by: z.string() }), timeout: DAY_MS })
    ctx.log.info('approved', { by })
    const shipped = await ctx.run('ship', () => `${id}, approved by ${by}`)
    return { shipped, paid }
  },
)

const JOBS = { order, charge }

describe('createTestDurably', () => {
  it('takes a run through children, weeks and signals in no time', async () => {
    const test = createTestDurably({ jobs: JOBS, steps: { pay: () => 'paid' } })
    const startedAt = test.now().getTime()
    const run = await test.jobs.order.trigger({ id: 'o1' })
    await test.signalWhenWaiting(run, 'approval', { by: 'ada' })
    const ended = await test.runToEnd(run)
    expect(ended).toMatchObject({ status: 'completed', output: { shipped: 'o1, approved by ada', paid: 'paid' } })
    if (ended.status === 'completed') expectTypeOf(ended.output).toEqualTypeOf<{ shipped: string; paid: string }>()
    expect(test.now().getTime() - startedAt).toBe(14 * DAY_MS)
    expect((await test.steps(run)).map(({ name, status }) => [name, status])).toEqual([
      ['begin to charge', 'completed'],
      ['charged', 'completed'],
      ['two weeks', 'completed'],
      ['approval', 'completed'],
      ['ship', 'completed'],
    ])
    expect(await test.logs(run)).toMatchObject([{ message: 'approved', data: { by: 'ada' } }])
    expect((await test.events(run)).map(({ type }) => type)).toContain('run:suspend')
    await test.close()
  })

  it('sends signals also to whom others let go on, and lets handles wait', async () => {
    const test = createTestDurably({ jobs: JOBS, steps: { pay: () => 'paid' } })
    const run = test.jobs.order.trigger({ id: 'o1' })
    const sending = test.signalWhenWaiting(run, 'approval', { by: 'ada' })
    expect(await test.jobs.order.wait((await run).id)).toMatchObject({ output: { paid: 'paid' } })
    await sending
    await expect(test.signalWhenWaiting(run, 'approval')).rejects.toMatchObject({ code: 'NEVER_WAITS' })
    await expect(test.jobs.order.wait('01J00000000000000000000000')).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  it('gives each wait for a name its own signal', async () => {
    const job = defineJob({ name: 'job', input: z.object({}) }, async (ctx) => [
      await ctx.waitFor('one', { signal: 'message' }),
      await ctx.waitFor('two', { signal: 'message' }),
    ])
    const test = createTestDurably({ jobs: { job } })
    const run = await test.jobs.job.trigger({})
    const sent = [1, 2, 3].map((payload) => test.signalWhenWaiting(run, 'message', payload))
    expect(await test.runToEnd(run)).toMatchObject({ output: [1, 2] })
    expect(await Promise.allSettled(sent)).toMatchObject([
      { status: 'fulfilled' },
      { status: 'fulfilled' },
      { status: 'rejected', reason: { code: 'NEVER_WAITS' } },
    ])
  })

  it('says that a run ended without waiting for a signal', async () => {
    const job = defineJob({ name: 'job', input: z.object({}) }, async (ctx) => {
      await ctx.sleep('a day', DAY_MS)
      return ctx.run('step', () => 1)
    })
    const test = createTestDurably({ jobs: { job } })
    const run = await test.jobs.job.trigger({})
    await expect(test.signalWhenWaiting(run, 'approval')).rejects.toMatchObject({
      code: 'NEVER_WAITS',
      message: expect.stringContaining('is completed, and did not wait for "approval"'),
    })
  })

  it('waits for a run as long as it is told to, in the time of the test', async () => {
    const job = defineJob({ name: 'job', input: z.object({}) }, async (ctx) => {
      await ctx.sleep('two days', 2 * DAY_MS)
      return ctx.waitFor('go')
    })
    const test = createTestDurably({ jobs: { job } })
    const startedAt = test.now().getTime()
    const waited = test.jobs.job.triggerAndWait({}, { timeout: DAY_MS, labels: { a: 'b' } })
    await expect(waited).rejects.toMatchObject({ code: 'TIMEOUT', message: expect.stringContaining(`${DAY_MS} ms`) })
    expect(test.now().getTime() - startedAt).toBe(DAY_MS)
    const [run] = await test.jobs.job.getRuns({ labels: { a: 'b' } })
    // Nothing else will ever be due.
    await expect(test.jobs.job.wait(run?.id ?? '', { timeout: 5 * DAY_MS })).rejects.toMatchObject({ code: 'TIMEOUT' })
    expect(test.now().getTime() - startedAt).toBe(6 * DAY_MS)
    await test.durably.signal(run?.id ?? '', 'go', 1)
    expect(await test.jobs.job.wait(run?.id ?? '', { timeout: 0 }).catch(({ code }) => code)).toBe('TIMEOUT')
    expect(await test.jobs.job.wait(run?.id ?? '', { timeout: 1 })).toMatchObject({ output: 1 })
  })

  it('gives up waiting for a run when it is told to', async () => {
    const giveUp = new AbortController()
    const job = defineJob({ name: 'job', input: z.object({}) }, (ctx) =>
      ctx.run('step', () => {
        giveUp.abort(new Error('enough'))
        return new Promise(() => {})
      }),
    )
    const test = createTestDurably({ jobs: { job } })
    await expect(test.jobs.job.triggerAndWait({}, { signal: giveUp.signal })).rejects.toThrow('enough')
    await expect(test.jobs.job.triggerAndWait({}, { signal: giveUp.signal })).rejects.toThrow('enough')
    expect(await test.jobs.job.getRuns()).toHaveLength(1)
    await expect(test.jobs.job.triggerAndWait({}, { timout: 1 } as never)).rejects.toThrow(
      'triggerAndWait() knows no option "timout". Did you mean "timeout"?',
    )
    await expect(test.jobs.job.wait('id', { timeout: -1 })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    await test.close()
  })

  it('names the step in which nothing happens any more', async () => {
    const job = defineJob({ name: 'job', input: z.object({}) }, (ctx) => ctx.run('hangs', () => new Promise(() => {})))
    const outside = defineJob({ name: 'outside', input: z.object({}) }, () => new Promise(() => {}))
    const test = createTestDurably({ jobs: { job, outside }, concurrency: 2, maxQuietMs: 40 })
    await expect(test.runToEnd(test.jobs.outside.trigger({}))).rejects.toMatchObject({
      code: 'NEVER_ENDS',
      message: expect.stringMatching(/job "outside".*nothing has happened for 40 ms of real time, outside of steps/),
    })
    await expect(test.runToEnd(test.jobs.job.trigger({}))).rejects.toMatchObject({
      code: 'NEVER_ENDS',
      message: expect.stringMatching(/nothing has happened for 40 ms of real time, .*in step "hangs" of job "job"/),
    })
    expect(() => createTestDurably({ jobs: {}, maxQuietMs: 0 })).toThrow('maxQuietMs must be')
    await test.close()
  })

  it('says why a run does not end', async () => {
    const test = createTestDurably({ jobs: JOBS, steps: { pay: () => 'paid' } })
    const waiting = defineJob({ name: 'waiting', input: z.object({}) }, (ctx) => ctx.waitFor('never'))
    const endless = defineJob({ name: 'endless', input: z.object({}) }, async (ctx) => {
      for (let round = 0; ; round++) await ctx.sleep(`${round % 2}`, 1000)
    })
    const other = createTestDurably({ jobs: { waiting, endless } })
    await expect(other.runToEnd(other.jobs.waiting.trigger({}))).rejects.toThrow(/waits for "never".*nothing is left/)
    expect(await other.runToEnd(other.jobs.endless.trigger({}))).toMatchObject({ status: 'failed' })
    await expect(test.runToEnd('01J00000000000000000000000')).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  it('ends by itself what would go on for ever', async () => {
    const endless = defineJob(
      { name: 'endless', input: z.object({}), retry: { maxAttempts: 1e9, delay: 1000 } },
      () => {
        throw new Error('again')
      },
    )
    const test = createTestDurably({ jobs: { endless } })
    await expect(test.runToEnd(test.jobs.endless.trigger({}))).rejects.toMatchObject({
      code: 'NEVER_ENDS',
      message: expect.stringContaining('jumped 1000 times'),
    })
  })

  it('replaces bodies by name, or by job and name, and can call the original', async () => {
    const body = (name: string) => defineJob({ name, input: z.object({}) }, (ctx) => ctx.run('step', () => name))
    const jobs = { a: body('a'), b: body('b'), c: body('toString') }
    const seen: unknown[] = []
    const test = createTestDurably({
      jobs,
      steps: {
        step: async (step, original) => {
          seen.push([step.jobName, step.stepName])
          return `not ${await original()}`
        },
        b: { step: () => 'another' },
      },
    })
    expect((await test.jobs.a.triggerAndWait({})).output).toBe('not a')
    expect((await test.jobs.b.triggerAndWait({})).output).toBe('another')
    expect((await test.jobs.c.triggerAndWait({})).output).toBe('not toString')
    expect(seen).toEqual([
      ['a', 'step'],
      ['toString', 'step'],
    ])
  })

  it.each<[string, unknown, string]>([
    ['nothing', undefined, 'createTestDurably() takes its options as an object, not undefined.'],
    ['a misspelled name', { jobs: JOBS, stesp: {} }, 'Did you mean "steps"?'],
    ['no jobs', {}, 'needs jobs made by defineJob(), as in { jobs: { order } }.'],
    ['a job that is none', { jobs: { order: () => 1 } }, 'needs jobs made by defineJob()'],
    ['a stub that is none', { jobs: JOBS, steps: { pay: 5 } }, 'the stub of "pay" must be a function, not 5.'],
    ['one of a job', { jobs: JOBS, steps: { order: { ship: 5 } } }, 'of "ship" of job "order" must be a function'],
    ['stubs of no job', { jobs: JOBS, steps: { ordr: {} } }, 'but the jobs here are "order", "charge".'],
    ['a list of stubs', { jobs: JOBS, steps: [] }, 'steps must be stubs by the names of their steps'],
    ['plugins', { jobs: JOBS, plugins: {} }, 'plugins must be a list.'],
    ['no number of jumps', { jobs: JOBS, maxJumps: 0 }, 'maxJumps must be an integer from 1, not 0.'],
  ])('refuses what it cannot use: %s', (_what, options, message) => {
    expect(() => createTestDurably(options as never)).toThrow(message)
  })

  it('tells at the end which stub no step asked for', async () => {
    const job = defineJob({ name: 'job', input: z.object({}) }, (ctx) => ctx.run('charge', () => 1))
    const stub = () => 2
    const steps = { chrage: stub, job: { charge: stub, ship: stub } }
    const test = createTestDurably({ jobs: { job }, steps })
    await test.jobs.job.triggerAndWait({})
    await expect(test.close()).rejects.toMatchObject({
      code: 'UNUSED_STUB',
      message: expect.stringContaining('"chrage", "job: ship". The steps that were run are "charge".'),
    })
    const never = createTestDurably({ jobs: { job }, steps: { charge: () => 2 } })
    await expect(never.close()).rejects.toThrow('No step was run.')
    await createTestDurably({ jobs: { job }, steps, allowUnusedStubs: true }).close()
  })

  it('counts a stub that another process was asked for', async () => {
    const job = defineJob({ name: 'job', input: z.object({}) }, (ctx) => ctx.run('charge', () => 1))
    const test = createTestDurably({ jobs: { job }, steps: { charge: () => 2 } })
    await test.jobs.job.triggerAndWait({})
    test.crash()
    await test.close()
  })

  it('runs a stub that fails again by the policy of the step', async () => {
    const job = defineJob({ name: 'job', input: z.object({}) }, (ctx) =>
      ctx.run('call', { retry: { maxAttempts: 3, delay: 3_600_000 } }, () => 'real'),
    )
    let calls = 0
    const test = createTestDurably({
      jobs: { job },
      steps: {
        call() {
          calls += 1
          if (calls < 3) throw new Error('503')
          return 'at last'
        },
      },
    })
    const startedAt = test.now().getTime()
    expect((await test.jobs.job.triggerAndWait({})).output).toBe('at last')
    expect(test.now().getTime() - startedAt).toBe(7_200_000)
    expect((await test.steps((await test.jobs.job.getRuns())[0]?.id ?? '')).map(({ status }) => status)).toEqual([
      'failed',
      'failed',
      'completed',
    ])
  })

  it('goes on in another process after a crash in the middle of a step', async () => {
    const bodies: string[] = []
    const job = defineJob({ name: 'job', input: z.object({}) }, async (ctx) => {
      await ctx.run('first', () => void bodies.push('first'))
      await ctx.run('second', () => void bodies.push('second'))
      return ctx.run('third', () => 3)
    })
    let crashes = 0
    const test = createTestDurably({
      jobs: { job },
      steps: {
        second(_step, original) {
          if (crashes++ === 0) test.crash()
          return original()
        },
      },
    })
    const before = test.durably
    const run = await test.jobs.job.trigger({})
    expect(await test.runToEnd(run)).toMatchObject({ status: 'completed', output: 3, attempt: 1 })
    expect(bodies).toEqual(['first', 'second', 'second'])
    expect(test.durably).not.toBe(before)
    expect((await test.events(run)).map(({ type }) => type)).toContain('run:recover')
  })

  it('lets time pass for bodies in flight too', async () => {
    const job = defineJob({ name: 'job', input: z.object({}) }, async (ctx) => {
      await ctx.run('hangs', { timeout: 60_000, retry: { maxAttempts: 2, delay: 1000 } }, ({ signal }) => {
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      })
    })
    const test = createTestDurably({ jobs: { job } })
    const run = await test.jobs.job.trigger({})
    await test.advance(0)
    expect(await test.jobs.job.getRun(run.id)).toMatchObject({ status: 'running' })
    await test.advance(60_000)
    expect(await test.jobs.job.getRun(run.id)).toMatchObject({ status: 'pending', waitingFor: { kind: 'steps' } })
    await test.advance(61_000)
    expect(await test.jobs.job.getRun(run.id)).toMatchObject({ status: 'failed' })
  })

  it('waits for what takes real time', async () => {
    const job = defineJob({ name: 'job', input: z.object({}), timeout: 1000 }, async (ctx) => {
      const [text] = await Promise.all([
        ctx.run('real', () => new Promise((resolve) => setTimeout(resolve, 5, 'read'))),
        ctx.sleep('meanwhile', 500),
      ])
      return text
    })
    const test = createTestDurably({ jobs: { job } })
    expect((await test.jobs.job.triggerAndWait({})).output).toBe('read')
  })

  it('stops runs at their time limit, and shows a failure', async () => {
    const slow = defineJob({ name: 'slow', input: z.object({}), timeout: 1000 }, (ctx) => ctx.sleep('long', DAY_MS))
    const bad = defineJob({ name: 'bad', input: z.object({}), retry: { maxAttempts: 5 } }, () => {
      throw new PermanentError('no use')
    })
    const test = createTestDurably({ jobs: { slow, bad } })
    expect(await test.runToEnd(test.jobs.slow.trigger({}))).toMatchObject({ status: 'timed_out' })
    expect(await test.runToEnd(test.jobs.bad.trigger({}))).toMatchObject({ status: 'failed', error: 'no use' })
    await expect(test.jobs.bad.triggerAndWait({})).rejects.toMatchObject({ code: 'RUN_FAILED' })
  })

  it('has no database, and takes stubs for transactions', async () => {
    const job = defineJob({ name: 'job', input: z.object({}) }, (ctx) =>
      ctx.transaction('write', (trx: { insert(): string }) => trx.insert()),
    )
    const without = createTestDurably({ jobs: { job } })
    expect(await without.runToEnd(without.jobs.job.trigger({}))).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('has no database: give the step of ctx.transaction a stub'),
    })
    const idle = defineJob({ name: 'idle', input: z.object({}) }, (ctx) => ctx.transaction('write', () => 'nothing'))
    const withIdle = createTestDurably({ jobs: { idle } })
    expect((await withIdle.jobs.idle.triggerAndWait({})).output).toBe('nothing')
    const test = createTestDurably({ jobs: { job }, steps: { write: () => 'as if' } })
    expect((await test.jobs.job.triggerAndWait({})).output).toBe('as if')
  })

  it('starts where it is told to, and refuses what is no time', async () => {
    const test = createTestDurably({ jobs: JOBS, startAt: '2031-02-03T04:05:06.000Z' })
    await test.advance(1000)
    expect(test.now().toISOString()).toBe('2031-02-03T04:05:07.000Z')
    await expect(test.advance(-1)).rejects.toThrow('advance() needs')
    expect(() => createTestDurably({ jobs: {}, startAt: 'soon' })).toThrow('startAt must be')
  })
})
