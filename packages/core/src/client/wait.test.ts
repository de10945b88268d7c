import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { CancelledError, RunFailedError, TimeoutError } from '../index'
import { anything, type Bench, countCalls, createBench, createFaulty, createGate } from '../testing/test-bench'
import { settled } from '../testing/fake-clock'

let bench: Bench

beforeEach(() => {
  bench = createBench()
})

afterEach(() => bench.close())

describe('triggerAndWait', () => {
  it('gives id and output', async () => {
    const durably = bench.open()
    const job = durably.defineJob({ name: 'job', input: anything }, (_ctx, payload) => ({ got: payload }))
    durably.start()
    const answer = await job.triggerAndWait(7)
    expect(answer).toEqual({ id: expect.any(String), output: { got: 7 } })
    expect(await durably.getRun(answer.id)).toMatchObject({ status: 'completed' })
  })

  it('passes the options of the trigger on', async () => {
    const durably = bench.open()
    const job = durably.defineJob({ name: 'job', input: anything }, () => 1)
    durably.start()
    const { id } = await job.triggerAndWait({}, { priority: 4, labels: { a: 'b' }, idempotencyKey: 'k' })
    expect(await durably.getRun(id)).toMatchObject({ priority: 4, labels: { a: 'b' }, idempotencyKey: 'k' })
    expect((await job.triggerAndWait({}, { idempotencyKey: 'k' })).id).toBe(id)
  })

  it('rejects with the run when it fails', async () => {
    const durably = bench.open()
    const job = durably.defineJob({ name: 'job', input: anything }, () => Promise.reject(new Error('no')))
    durably.start()
    const error = await job.triggerAndWait({}).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(RunFailedError)
    expect(error).toMatchObject({
      code: 'RUN_FAILED',
      message: expect.stringContaining('no'),
      run: { status: 'failed', error: 'no' },
    })
  })

  it('rejects when it is cancelled', async () => {
    const durably = bench.open()
    const job = durably.defineJob({ name: 'job', input: anything }, () => 1)
    const { id } = await job.trigger({}, { delay: 1000 })
    const waiting = job.wait(id).catch((thrown: unknown) => thrown)
    await durably.cancel(id)
    await settled()
    const error = await waiting
    expect(error).toBeInstanceOf(CancelledError)
    expect(error).toMatchObject({ code: 'CANCELLED', runId: id })
  })

  it('rejects after its timeout, and the run goes on', async () => {
    const gate = createGate<string>()
    const durably = bench.open()
    const job = durably.defineJob({ name: 'job', input: anything }, () => gate.opened)
    durably.start()
    const waiting = job.triggerAndWait({}, { timeout: 500 }).catch((thrown: unknown) => thrown)
    await bench.clock.advance(500)
    const error = await waiting
    expect(error).toBeInstanceOf(TimeoutError)
    expect(error).toMatchObject({ code: 'TIMEOUT' })
    const [run] = await job.getRuns()
    expect(run).toMatchObject({ status: 'running' })
    gate.open('late')
    await settled()
    expect(await job.getRuns()).toMatchObject([{ status: 'completed', output: 'late' }])
  })

  it('is given up by its signal, and the run goes on', async () => {
    const controller = new AbortController()
    const gate = createGate()
    const durably = bench.open()
    const job = durably.defineJob({ name: 'job', input: anything }, () => gate.opened)
    durably.start()
    const waiting = job.triggerAndWait({}, { signal: controller.signal }).catch((thrown: unknown) => thrown)
    await settled()
    controller.abort(new Error('enough'))
    expect(await waiting).toMatchObject({ message: 'enough' })
    expect(await job.getRuns()).toMatchObject([{ status: 'running' }])
    gate.open()
  })

  it('triggers nothing under a signal that is aborted already', async () => {
    const durably = bench.open()
    const job = durably.defineJob({ name: 'job', input: anything }, () => 1)
    await expect(job.triggerAndWait({}, { signal: AbortSignal.abort(new Error('enough')) })).rejects.toThrow('enough')
    expect(await durably.getRuns()).toEqual([])
  })

  it.each([Number.NaN, -1, Number.POSITIVE_INFINITY, '5' as never])(
    'refuses a timeout of %s before anything is stored',
    async (timeout) => {
      const durably = bench.open()
      const job = durably.defineJob({ name: 'job', input: anything }, () => 1)
      await expect(job.triggerAndWait({}, { timeout })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
      await expect(job.wait('nothing', { timeout })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
      await expect(durably.stop({ timeout })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
      await expect(durably.runUntilIdle({ budgetMs: timeout })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
      expect(await durably.getRuns()).toEqual([])
    },
  )
})

describe('waiting for another run inside of a job', () => {
  it.each(['triggerAndWait', 'wait'] as const)('is refused in a step: %s() names what to use', async (call) => {
    const durably = bench.open({ concurrency: 2 })
    const child = durably.defineJob({ name: 'child', input: anything }, () => 1)
    const parent = durably.defineJob({ name: 'parent', input: anything }, (ctx) =>
      ctx.run('step', () => (call === 'wait' ? child.wait(ctx.runId) : child.triggerAndWait({}))),
    )
    const { id } = await parent.trigger({})
    await durably.runUntilIdle()
    const run = await parent.getRun(id)
    expect(run).toMatchObject({ status: 'failed', error: expect.stringContaining(`${call}() inside of run ${id}`) })
    expect(run?.error).toContain('Use ctx.trigger() and ctx.wait()')
    expect(await child.getRuns()).toEqual([])
  })

  it('is fine for a run of another instance, which has slots of its own', async () => {
    const elsewhere = bench.open()
    const child = elsewhere.defineJob({ name: 'child', input: anything }, () => 'from there')
    elsewhere.start()
    const { run } = await bench.perform((ctx) => ctx.run('step', async () => (await child.triggerAndWait({})).output))
    expect(run).toMatchObject({ status: 'completed', output: 'from there' })
  })
})

describe('wait', () => {
  it('gives the output of a run that ended before', async () => {
    const { job, run } = await bench.perform(() => 'done')
    expect(await job.wait(run.id)).toEqual({ id: run.id, output: 'done' })
  })

  it('is NOT_FOUND for a run that does not exist, or is deleted meanwhile', async () => {
    const { durably, job, run } = await bench.perform(() => 'done')
    await expect(job.wait('nothing')).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await durably.deleteRun(run.id)
    await expect(job.wait(run.id)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  it('is NOT_FOUND for a run of another job', async () => {
    const { durably, run } = await bench.perform(() => 'done')
    const other = durably.defineJob({ name: 'other', input: anything }, () => 1)
    await expect(other.wait(run.id)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  it('hears of an end in another process by polling', async () => {
    const here = bench.open()
    const job = here.defineJob({ name: 'job', input: anything }, () => {})
    const { id } = await job.trigger({})
    const waiting = job.wait(id)
    await settled()
    const there = bench.open()
    there.defineJob({ name: 'job', input: anything }, () => 'from there')
    there.start()
    await settled()
    await bench.clock.advance(1000)
    expect(await waiting).toMatchObject({ output: 'from there' })
  })

  it('answers everybody who waits for one run, with one poll', async () => {
    const counted = countCalls(bench.storage)
    const gate = createGate()
    const { job, run } = await bench.perform(() => gate.opened, { storage: counted.storage })
    const waiting = Promise.all(Array.from({ length: 20 }, () => job.wait(run.id)))
    await settled()
    counted.reset()
    await bench.clock.advance(3500)
    expect(counted.calls.getRuns).toBe(3)
    gate.open()
    await settled()
    expect(await waiting).toHaveLength(20)
  })

  it('does not poll when nobody waits any more', async () => {
    const counted = countCalls(bench.storage)
    const durably = bench.open({ storage: counted.storage })
    const job = durably.defineJob({ name: 'job', input: anything }, () => 1)
    const { id } = await job.trigger({})
    const waiting = job.wait(id, { timeout: 100 }).catch(() => {})
    await bench.clock.advance(100)
    await waiting
    await bench.clock.advance(1000)
    counted.reset()
    await bench.clock.advance(5000)
    expect(counted.calls).toEqual({})
    expect(bench.clock.pendingTimers()).toBe(0)
  })

  it('leaves no listener on its signal', async () => {
    const { job, run } = await bench.perform(() => 'done')
    const controller = new AbortController()
    const listeners = new Set<unknown>()
    const { signal } = controller
    const spied = Object.assign(signal, {
      addEventListener: (_type: string, listener: unknown) => void listeners.add(listener),
      removeEventListener: (_type: string, listener: unknown) => void listeners.delete(listener),
    })
    await job.wait(run.id, { signal: spied })
    expect(listeners.size).toBe(0)
  })

  it('survives an outage of the storage', async () => {
    const faulty = createFaulty(bench.storage)
    const gate = createGate()
    const { job, run } = await bench.perform(() => gate.opened, { storage: faulty.storage })
    const waiting = job.wait(run.id)
    faulty.fail('getRuns')
    gate.open()
    await bench.clock.advance(3000)
    faulty.heal()
    await bench.clock.advance(3000)
    expect(await waiting).toMatchObject({ id: run.id })
  })

  it.each([-1, Number.NaN])('refuses a timeout of %s', async (timeout) => {
    const gate = createGate()
    const { job, run } = await bench.perform(() => gate.opened)
    const outcome = job.wait(run.id, { timeout }).catch((thrown: unknown) => thrown)
    gate.open()
    await settled()
    expect(await outcome).toMatchObject({ code: 'INVALID_OPTION' })
  })
})
