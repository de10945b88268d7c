import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { defineJob, type JobContext } from '../index'
import { anything, type Bench, createBench, createGate, createMortal, found, recordEvents } from '../testing/test-bench'
import { settled } from '../testing/fake-clock'

let bench: Bench

beforeEach(() => {
  bench = createBench()
})

afterEach(() => bench.close())

const untilAborted = (ctx: JobContext) =>
  new Promise<never>((_resolve, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason)))

function slow(execute: (ctx: JobContext) => unknown = untilAborted, timeout = 1000) {
  return defineJob({ name: 'slow', input: anything, timeout }, execute)
}

describe('the timeout of a job', () => {
  it('ends the run timed_out, with its signal aborted', async () => {
    const durably = bench.open()
    const reasons: unknown[] = []
    const { job } = durably.register({
      job: slow((ctx) => untilAborted(ctx).catch((reason: unknown) => void reasons.push(reason))),
    })
    const events = recordEvents(durably)
    durably.start()
    const { id } = await job.trigger({})
    await settled()
    expect(await job.getRun(id)).toMatchObject({ status: 'running', deadlineAt: '2030-01-01T00:00:01.000Z' })
    await bench.clock.advance(999)
    expect(await job.getRun(id)).toMatchObject({ status: 'running' })
    await bench.clock.advance(1)
    const run = found(await job.getRun(id))
    expect(run).toMatchObject({ status: 'timed_out', output: null, errorDetail: { code: 'TIMEOUT' } })
    expect(run.error).toContain('1000 ms')
    expect(reasons).toMatchObject([{ code: 'TIMEOUT', reason: 'timeout' }])
    expect(events.at(-1)).toMatchObject({ type: 'run:timeout', runId: id, jobName: 'slow', error: run.error })
    await expect(job.wait(id)).rejects.toMatchObject({ code: 'RUN_FAILED', run: { status: 'timed_out' } })
  })

  it('leaves a run alone that is done in time, and no timer behind', async () => {
    const durably = bench.open()
    const { job } = durably.register({ job: slow(() => 'quick') })
    durably.start()
    await settled()
    const timers = bench.clock.pendingTimers()
    const { id } = await job.trigger({})
    await settled()
    expect(bench.clock.pendingTimers()).toBe(timers)
    await bench.clock.advance(2000)
    expect(await job.getRun(id)).toMatchObject({ status: 'completed', output: 'quick' })
  })

  it('gives a body that ignores the signal 5 s', async () => {
    const durably = bench.open()
    const { job } = durably.register({ job: slow((ctx) => ctx.run('deaf', () => new Promise(() => {}))) })
    durably.start()
    const { id } = await job.trigger({})
    await bench.clock.advance(5999)
    expect(await job.getRun(id)).toMatchObject({ status: 'running' })
    await bench.clock.advance(1)
    expect(await job.getRun(id)).toMatchObject({ status: 'timed_out' })
  })

  it('does not count the time in the queue', async () => {
    const durably = bench.open()
    const { job } = durably.register({ job: slow(() => 'quick') })
    const { id } = await job.trigger({})
    await bench.clock.advance(5000)
    durably.start()
    await settled()
    expect(await job.getRun(id)).toMatchObject({ status: 'completed' })
  })

  it('goes on from the first start when the worker is lost, and then starts no body', async () => {
    const mortal = createMortal(bench.storage)
    const first = bench.open({ storage: mortal.storage })
    const { job } = first.register({ job: slow(untilAborted, 20_000) })
    first.start()
    const { id } = await job.trigger({})
    await settled()
    mortal.kill()
    const second = bench.open()
    let again = false
    const { job: seen } = second.register({
      job: slow(() => {
        again = true
      }, 20_000),
    })
    second.start()
    await bench.clock.advance(40_000)
    expect(await seen.getRun(id)).toMatchObject({ status: 'timed_out' })
    expect(again).toBe(false)
  })

  it('keeps its deadline over a crash that leaves time', async () => {
    const mortal = createMortal(bench.storage)
    const first = bench.open({ storage: mortal.storage, workerId: 'first' })
    const { job } = first.register({ job: slow(untilAborted, 20_000) })
    first.start()
    const { id } = await job.trigger({})
    await bench.clock.advance(15_000)
    mortal.kill()
    const second = bench.open()
    const { job: seen } = second.register({ job: slow(untilAborted, 20_000) })
    second.start()
    await settled()
    await second.recover({ workerId: 'first' })
    await bench.clock.advance(4999)
    expect(await seen.getRun(id)).toMatchObject({ status: 'running' })
    await bench.clock.advance(1)
    expect(await seen.getRun(id)).toMatchObject({ status: 'timed_out' })
  })

  it('starts anew after a retry by hand', async () => {
    const durably = bench.open()
    const { job } = durably.register({ job: slow() })
    durably.start()
    const { id } = await job.trigger({})
    await bench.clock.advance(1000)
    expect(await job.getRun(id)).toMatchObject({ status: 'timed_out' })
    await bench.clock.advance(5000)
    await durably.retry(id)
    await bench.clock.advance(999)
    expect(await job.getRun(id)).toMatchObject({ status: 'running', attempt: 2 })
    await bench.clock.advance(1)
    expect(await job.getRun(id)).toMatchObject({ status: 'timed_out' })
  })

  it('loses against a cancel that came first', async () => {
    const durably = bench.open()
    const gate = createGate()
    const { job } = durably.register({ job: slow(() => gate.opened) })
    durably.start()
    const { id } = await job.trigger({})
    await settled()
    await durably.cancel(id)
    await bench.clock.advance(1000)
    gate.open()
    await settled()
    expect(await job.getRun(id)).toMatchObject({ status: 'cancelled' })
  })

  it('is not undone by a stop that comes after it', async () => {
    const durably = bench.open()
    const { job } = durably.register({ job: slow((ctx) => ctx.run('deaf', () => new Promise(() => {}))) })
    durably.start()
    const { id } = await job.trigger({})
    await bench.clock.advance(1000)
    const stopped = durably.stop({ timeout: 10 })
    await bench.clock.advance(6000)
    await stopped
    expect(await job.getRun(id)).toMatchObject({ status: 'timed_out' })
  })

  it.each([0, -1, Number.NaN])('refuses %s', (timeout) => {
    expect(() => slow(untilAborted, timeout)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }))
  })
})
