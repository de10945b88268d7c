import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { EndedStatus } from '../index'
import { anything, type Bench, createBench, createGate, found, recordEvents } from '../testing/test-bench'
import { settled } from '../testing/fake-clock'

let bench: Bench

beforeEach(() => {
  bench = createBench()
})

afterEach(() => bench.close())

/** A job that does what its payload says. */
function theatre() {
  const durably = bench.open()
  const calls = { count: 0 }
  const job = durably.defineJob({ name: 'play', input: anything, timeout: 50 }, async (ctx, act) => {
    calls.count += 1
    if (act === 'fail') throw new Error('stage fright')
    if (act === 'hang')
      await new Promise((_resolve, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason)))
    return act
  })
  async function endAs(status: EndedStatus) {
    const act = status === 'failed' ? 'fail' : status === 'timed_out' ? 'hang' : 'play'
    const { id } = await job.trigger(act, status === 'cancelled' ? { delay: 1 } : {})
    if (status === 'cancelled') await durably.cancel(id)
    await bench.clock.advance(60)
    expect(await durably.getRun(id)).toMatchObject({ status })
    return id
  }
  durably.start()
  return { durably, job, calls, endAs }
}

describe('retry', () => {
  it.each(['failed', 'timed_out', 'cancelled'] as const)('makes a %s run pending again', async (status) => {
    const { durably, endAs } = theatre()
    const id = await endAs(status)
    await durably.stop()
    const run = await durably.retry(id)
    expect(run).toMatchObject({
      id,
      status: 'pending',
      attempt: 2,
      crashCount: 0,
      output: null,
      error: null,
      errorDetail: null,
      deadlineAt: null,
      finishedAt: null,
      cancelRequestedAt: null,
    })
  })

  it('starts the run at once in this process', async () => {
    const { durably, endAs, calls } = theatre()
    const id = await endAs('failed')
    const before = calls.count
    await durably.retry(id)
    await settled()
    expect(calls.count).toBe(before + 1)
    expect(await durably.getRun(id)).toMatchObject({ status: 'failed', attempt: 2 })
  })

  it('has one winner among many', async () => {
    const { durably, endAs } = theatre()
    const id = await endAs('failed')
    await durably.stop()
    const events = recordEvents(durably, ['run:retry'])
    const answers = await Promise.allSettled(Array.from({ length: 5 }, () => durably.retry(id)))
    expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 'rejected')).toMatchObject(
      Array.from({ length: 4 }, () => ({ reason: { code: 'CONFLICT', runId: id, status: 'pending' } })),
    )
    expect(events).toMatchObject([{ runId: id, jobName: 'play', byHand: true, delayMs: null }])
  })

  it('refuses runs that are not ended or completed, and unknown ones', async () => {
    const { durably, job, endAs } = theatre()
    const waiting = await job.trigger('play', { delay: 1000 })
    await expect(durably.retry(waiting.id)).rejects.toMatchObject({ code: 'CONFLICT', status: 'pending' })
    const completed = await endAs('completed')
    await expect(durably.retry(completed)).rejects.toMatchObject({ code: 'CONFLICT', status: 'completed' })
    await expect(durably.retry('nothing')).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  it('never lets the attempt go back', async () => {
    const { durably, endAs } = theatre()
    const id = await endAs('failed')
    for (const attempt of [2, 3, 4]) {
      expect(await durably.retry(id)).toMatchObject({ attempt })
      await settled()
    }
  })
})

describe('deleteRun', () => {
  it('removes an ended run and everything of it', async () => {
    const { durably, job } = theatre()
    const events = recordEvents(durably, ['run:delete'])
    const { id } = await job.trigger('play')
    await settled()
    await durably.deleteRun(id)
    expect(await durably.getRun(id)).toBeNull()
    expect(await durably.getSteps(id)).toEqual([])
    expect(events).toMatchObject([{ type: 'run:delete', runId: id, jobName: 'play' }])
    await expect(durably.deleteRun(id)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  it('refuses a run that has not ended', async () => {
    const gate = createGate()
    const { durably, run } = await bench.perform(() => gate.opened)
    await expect(durably.deleteRun(run.id)).rejects.toMatchObject({ code: 'CONFLICT', status: 'running' })
    gate.open()
    await settled()
    await expect(durably.deleteRun(run.id)).resolves.toBeUndefined()
  })
})

describe('purge', () => {
  it('removes all ended runs and says how many', async () => {
    const { durably, job, endAs } = theatre()
    for (const status of ['completed', 'failed', 'timed_out', 'cancelled'] as const) await endAs(status)
    const waiting = await job.trigger('play', { delay: 10_000 })
    expect(await durably.purge()).toBe(4)
    expect((await durably.getRuns()).map(({ id }) => id)).toEqual([waiting.id])
    expect(await durably.purge()).toBe(0)
  })

  it('goes by age, in milliseconds or by an instant', async () => {
    const { durably, endAs } = theatre()
    const old = await endAs('completed')
    await bench.clock.advance(1000)
    const young = await endAs('completed')
    expect(await durably.purge({ olderThan: 5000 })).toBe(0)
    expect(await durably.purge({ olderThan: 500 })).toBe(1)
    expect(await durably.getRun(old)).toBeNull()
    expect(await durably.purge({ olderThan: new Date(bench.clock.now() - 1000) })).toBe(0)
    expect(await durably.purge({ olderThan: new Date(bench.clock.now() + 1) })).toBe(1)
    expect(await durably.getRun(young)).toBeNull()
  })

  it('goes by status, job and tenant', async () => {
    const { durably, job, endAs } = theatre()
    const failed = await endAs('failed')
    await endAs('completed')
    const { id } = await job.trigger('play', { tenant: 't' })
    await settled()
    expect(await durably.purge({ tenant: 't' })).toBe(1)
    expect(await durably.getRun(id)).toBeNull()
    expect(await durably.purge({ status: ['completed'], jobName: 'none' })).toBe(0)
    expect(await durably.purge({ jobName: [] })).toBe(0)
    expect(await durably.purge({ jobName: ['none', 'other'] })).toBe(0)
    expect(await durably.purge({ status: 'completed', jobName: ['none', 'play'] })).toBe(1)
    expect((await durably.getRuns()).map((run) => run.id)).toEqual([failed])
  })

  it('leaves the newest', async () => {
    const { durably, endAs } = theatre()
    await endAs('completed')
    const newest = await endAs('completed')
    expect(await durably.purge({ keepNewest: 1 })).toBe(1)
    expect((await durably.getRuns()).map(({ id }) => id)).toEqual([newest])
  })

  it('removes more than one batch', async () => {
    const { durably, job } = theatre()
    const runs = await job.batchTrigger(
      Array.from({ length: 1100 }, () => ({ payload: 'play', options: { delay: 1e6 } })),
    )
    for (const { id } of runs) await durably.cancel(id)
    expect(await durably.purge()).toBe(1100)
  })

  it.each([
    ['a status that is no end', { status: 'running' as 'failed' }],
    ['a negative age', { olderThan: -1 }],
    ['an age that is no number', { olderThan: Number.NaN }],
    ['an age that no date has room for', { olderThan: Number.MAX_SAFE_INTEGER }],
    ['a date that is later than what is kept', { olderThan: new Date(8.64e15) }],
    ['an invalid Date', { olderThan: new Date(Number.NaN) }],
    ['a negative number to keep', { keepNewest: -1 }],
  ])('refuses %s', async (_what, options) => {
    const { durably, endAs } = theatre()
    const id = await endAs('completed')
    await expect(durably.purge(options)).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    expect(found(await durably.getRun(id)).status).toBe('completed')
  })
})
