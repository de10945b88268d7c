import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createDurably, declareJob, defineJob, type JobHandle } from '../index'
import { settled } from '../testing/fake-clock'
import { anything, type Bench, createBench, recordEvents } from '../testing/test-bench'

let bench: Bench

beforeEach(() => {
  bench = createBench()
})

afterEach(() => bench.close())

const input = z.object({ n: z.number() })
const output = z.object({ doubled: z.number() })
const options = { name: 'double', input, output, timeout: 60_000, version: '7' }

const declared = declareJob(options)
const defined = defineJob(options, (_ctx, { n }) => ({ doubled: 2 * n }))

function openWorker() {
  const worker = bench.open()
  worker.register({ double: defined })
  return worker
}

describe('a declared job', () => {
  it('is triggered, awaited and read by a process that cannot execute it', async () => {
    const { double } = bench.open().register({ double: declared })
    const waiting = double.triggerAndWait({ n: 4 })
    openWorker().start()
    await bench.clock.advance(1000)
    const done = await waiting
    expect(done.output).toEqual({ doubled: 8 })
    expect(await double.getRun(done.id)).toMatchObject({ status: 'completed', jobVersion: '7' })
    expect(await double.getRuns()).toHaveLength(1)
    expect(await double.wait(done.id)).toEqual(done)
  })

  it('checks its payloads, and gives its runs their time-out and version', async () => {
    const durably = bench.open()
    const { double } = durably.register({ double: declared })
    await expect(double.trigger({ n: 'four' as never })).rejects.toMatchObject({ code: 'VALIDATION' })
    const { id } = await double.trigger({ n: 4 })
    expect(await bench.storage.getRun(id)).toMatchObject({ timeoutMs: 60_000, jobVersion: '7' })
  })

  it('is claimed by no worker that only declares it, and is not reported as unknown there', async () => {
    const durably = bench.open()
    const events = recordEvents(durably, ['job:unknown'])
    const { double } = durably.register({ double: declared })
    const { id } = await double.trigger({ n: 4 })
    durably.start()
    await bench.clock.advance(120_000)
    expect(await double.getRun(id)).toMatchObject({ status: 'pending', ownerId: null })
    expect(await durably.runUntilIdle()).toMatchObject({ ran: 0 })
    expect(events).toEqual([])
    expect(await durably.explain(id)).toContain('knows the job: it is only declared here.')
  })

  it('may be registered beside its definition, in any order: then it is executed', async () => {
    for (const order of [
      [declared, defined],
      [defined, declared],
    ]) {
      const durably = bench.open()
      const handles = order.map((job) => durably.register({ job }).job as JobHandle)
      durably.start()
      for (const handle of handles) {
        const { output: answer } = await handle.triggerAndWait({ n: 1 })
        expect(answer).toEqual({ doubled: 2 })
      }
      await durably.stop()
    }
  })

  it('is one of its name: another declaration is refused', () => {
    const durably = bench.open()
    durably.register({ double: declared })
    durably.register({ again: declared })
    expect(() => durably.register({ other: declareJob(options) })).toThrow('already registered')
    expect(() => durably.register({ nothing: { name: 'x' } as never })).toThrow('defineJob() or declareJob()')
  })

  it('can be a child', async () => {
    openWorker().start()
    const { run, now } = await bench.perform(async (ctx) => {
      const child = await ctx.trigger('child', declared, { n: 21 })
      return ctx.wait('its answer', child)
    })
    await bench.clock.advance(3000)
    expect(run.status).not.toBe('failed')
    expect(await now()).toMatchObject({ status: 'completed', output: { doubled: 42 } })
  })

  it('is not paused where it is not executed', () => {
    const durably = bench.open()
    durably.register({ double: declared })
    expect(() => durably.pauseJob('double')).toThrow('There is no job "double" on this instance.')
  })

  it('refuses what a job would refuse', () => {
    expect(() => declareJob({ name: '', input })).toThrow('a name that is not empty')
    expect(() => declareJob({ name: 'x', input: {} as never })).toThrow('needs an input schema')
    expect(() => declareJob({ name: 'x', input, output: {} as never })).toThrow('The output of job "x" is no schema.')
    expect(() => declareJob({ name: 'x', input, timeout: Number.NaN })).toThrow('more than 0 ms')
    expect(() => declareJob({ name: 'x', input, timeout: Number.MAX_SAFE_INTEGER })).toThrow('at most 100 years')
    expect(() => declareJob(undefined as never)).toThrow('declareJob() takes its options as an object')
  })
})

describe('a job by its name', () => {
  it('is triggered without anything registered, its payload as it is', async () => {
    const { id, deduplicated } = await bench.open().trigger('double', { n: 4 }, { priority: 2 })
    expect(deduplicated).toBe(false)
    const worker = openWorker()
    await worker.runUntilIdle()
    expect(await worker.getRun(id)).toMatchObject({ status: 'completed', output: { doubled: 8 }, priority: 2 })
  })

  it('has its schema where it is registered, or declared', async () => {
    const declaring = bench.open()
    declaring.register({ double: declared })
    for (const durably of [openWorker(), declaring]) {
      await expect(durably.trigger('double', { n: 'four' })).rejects.toMatchObject({ code: 'VALIDATION' })
      const { id } = await durably.trigger('double', { n: 4 })
      expect(await bench.storage.getRun(id)).toMatchObject({ jobVersion: '7', timeoutMs: 60_000 })
    }
    const { id } = await bench.open().trigger('double', { n: 4 })
    expect(await bench.storage.getRun(id)).toMatchObject({ jobVersion: null, timeoutMs: null })
  })

  it('needs a name, and a payload that can be stored', async () => {
    const durably = bench.open()
    await expect(durably.trigger('', {})).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    await expect(durably.trigger('double', { n: 4n })).rejects.toMatchObject({ code: 'SERIALIZATION' })
    expect((await durably.trigger('double')).payload).toBeUndefined()
  })

  it('wakes the worker of its own instance', async () => {
    const worker = openWorker()
    worker.start()
    await settled()
    const { id } = await worker.trigger('double', { n: 3 })
    await settled()
    expect(await worker.getRun(id)).toMatchObject({ status: 'completed' })
  })
})

describe('trigger of an instance', () => {
  it('takes a job, a declaration or a handle', async () => {
    const durably = bench.open()
    const { double } = durably.register({ double: declared })
    const runs = [await durably.trigger(defined, { n: 1 }), await durably.trigger(double, { n: 2 })]
    runs.push(await bench.open().trigger(declared, { n: 3 }))
    expect(runs.map(({ payload, jobName }) => [jobName, payload])).toEqual([
      ['double', { n: 1 }],
      ['double', { n: 2 }],
      ['double', { n: 3 }],
    ])
    // Of a handle of another instance nothing but the name is known.
    await expect(bench.open().trigger(double, { n: 4 })).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(durably.trigger(null as never, {})).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  it('stays in its tenant when it is scoped', async () => {
    const scoped = bench.open().scoped({ tenant: 'acme' })
    const byName = await scoped.trigger('double', { n: 1 })
    const byJob = await scoped.trigger(declared, { n: 2 }, { tenant: 'other' } as object)
    expect([byName.tenant, byJob.tenant]).toEqual(['acme', 'acme'])
    await expect(scoped.trigger('double', {}, { idempotancyKey: 'k' } as object)).rejects.toThrow('idempotencyKey')
  })

  it('is refused by a closed instance', async () => {
    const durably = createDurably({ storage: bench.storage, logger: null })
    durably.register({ job: defineJob({ name: 'job', input: anything }, () => 1) })
    await durably.close()
    await expect(durably.trigger('job')).rejects.toMatchObject({ code: 'CLOSED' })
  })
})
