import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineJob, type StandardSchema } from '../index'
import { anything, type Bench, createBench } from '../testing/test-bench'
import { settled } from '../testing/fake-clock'

let bench: Bench

beforeEach(() => {
  bench = createBench()
})

afterEach(() => bench.close())

describe('defineJob', () => {
  it.each([
    ['no name', { name: '', input: anything }],
    ['a name that is no text', { name: 5 as unknown as string, input: anything }],
    ['a name with NUL', { name: 'a\0b', input: anything }],
    ['a name of 10,000 characters', { name: 'x'.repeat(10_000), input: anything }],
    ['no schema', { name: 'job', input: undefined as unknown as StandardSchema }],
    ['a schema of another kind', { name: 'job', input: { parse: () => 1 } as unknown as StandardSchema }],
    ['an output that is no schema', { name: 'job', input: anything, output: {} as unknown as undefined }],
  ])('refuses %s', (_what, options) => {
    expect(() => defineJob(options, () => {})).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }))
  })

  it('refuses a job without a function', () => {
    expect(() => defineJob({ name: 'job', input: anything }, undefined as unknown as () => void)).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION' }),
    )
  })

  it('gives a value without state: two instances do not know of each other', async () => {
    const job = defineJob({ name: 'job', input: anything }, () => 'done')
    const one = bench.open()
    const two = bench.open()
    const handles = [one.register({ job }).job, two.register({ job }).job] as const
    one.start()
    expect((await handles[0].triggerAndWait({})).output).toBe('done')
    const waiting = handles[1].triggerAndWait({})
    await bench.clock.advance(2000)
    expect((await waiting).output).toBe('done')
  })

  it('records the version of the job with each run', async () => {
    const durably = bench.open()
    const job = durably.defineJob({ name: 'job', input: anything, version: '2' }, () => 'done')
    expect(await job.trigger({})).toMatchObject({ jobVersion: '2' })
  })
})

describe('two jobs of one name', () => {
  it('are refused on one instance', () => {
    const durably = bench.open()
    durably.defineJob({ name: 'job', input: anything }, () => {})
    expect(() => durably.defineJob({ name: 'job', input: anything }, () => {})).toThrow(
      expect.objectContaining({ code: 'DUPLICATE_JOB', message: expect.stringContaining('"job"') }),
    )
    expect(() => durably.register({ other: defineJob({ name: 'job', input: anything }, () => {}) })).toThrow(
      expect.objectContaining({ code: 'DUPLICATE_JOB' }),
    )
  })

  it('are one when they are the same value', async () => {
    const job = defineJob({ name: 'job', input: anything }, () => 'done')
    const durably = bench.open()
    const { a } = durably.register({ a: job })
    const { b } = durably.register({ b: job })
    durably.start()
    const run = await a.trigger({})
    await settled()
    expect(await b.getRun(run.id)).toMatchObject({ status: 'completed' })
  })

  it('leave nothing of a refused list behind', () => {
    const durably = bench.open()
    durably.defineJob({ name: 'taken', input: anything }, () => {})
    const fresh = defineJob({ name: 'fresh', input: anything }, () => {})
    const taken = defineJob({ name: 'taken', input: anything }, () => {})
    expect(() => durably.register({ fresh, taken })).toThrow()
    expect(() => durably.defineJob({ name: 'fresh', input: anything }, () => {})).not.toThrow()
  })
})

describe('a job', () => {
  it('knows its run, its name and its attempt', async () => {
    const seen: unknown[] = []
    const { run } = await bench.perform(
      (ctx) => void seen.push([ctx.runId, ctx.jobName, ctx.attempt, ctx.signal.aborted]),
    )
    expect(seen).toEqual([[run.id, 'job', 1, false]])
  })

  it('may use its context taken apart', async () => {
    const { run, events } = await bench.perform(async ({ run: step, log, progress, runId }) => {
      log.info('hello')
      progress(1, 2)
      return step('a', ({ log: stepLog, save, progress: stepProgress }) => {
        stepLog.info('there')
        stepProgress(2)
        return save({}).then(() => runId)
      })
    })
    expect(run).toMatchObject({ status: 'completed', output: run.id, progress: { current: 2, total: 2 } })
    expect(events.filter(({ type }) => type === 'log:write')).toMatchObject([{ stepName: null }, { stepName: 'a' }])
  })

  it('may be used through a handle taken apart', async () => {
    const durably = bench.open()
    const { trigger, triggerAndWait, wait, batchTrigger, getRun, getRuns } = durably.defineJob(
      { name: 'job', input: z.object({}) },
      () => 'done',
    )
    const { start, getRuns: all, stop } = durably
    start()
    const { id } = await trigger({})
    expect(await wait(id)).toEqual({ id, output: 'done' })
    expect(await triggerAndWait({})).toMatchObject({ output: 'done' })
    await batchTrigger([{ payload: {} }])
    await settled()
    expect(await getRun(id)).toMatchObject({ status: 'completed' })
    expect(await getRuns()).toHaveLength(3)
    expect(await all()).toHaveLength(3)
    await stop()
  })

  it('may do without steps and without awaiting', async () => {
    const { run } = await bench.perform(() => 'at once')
    expect(run).toMatchObject({ status: 'completed', output: 'at once', currentStepIndex: 0 })
  })
})
