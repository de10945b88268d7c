import { afterEach, beforeEach, describe, expect, expectTypeOf, it } from 'vitest'
import { declareJob, defineJob, type FailedRun, failedRun, type JobDefinition } from '../index'
import { settled } from '../testing/fake-clock'
import { anything, type Bench, createBench, createMortal, found, recordEvents } from '../testing/test-bench'

let bench: Bench

beforeEach(() => {
  bench = createBench()
})

afterEach(() => bench.close())

/** What the handler was given, in its order. */
function alerts() {
  const told: FailedRun[] = []
  const alert = defineJob({ name: 'alert', input: failedRun }, (_ctx, run) => {
    told.push(run)
  })
  return { told, alert }
}

function failingJob(onFailure: JobDefinition<string, FailedRun>, timeout?: number) {
  return defineJob({ name: 'import', input: anything, version: 'v2', timeout, onFailure }, async (ctx) => {
    if (timeout !== undefined) await new Promise((_resolve, reject) => ctx.signal.addEventListener('abort', reject))
    await ctx.run('fetch', () => {
      throw new TypeError('boom')
    })
  })
}

describe('the job that a failure calls', () => {
  it('runs once, with what there is to say of the failure, as a child of the run', async () => {
    const { told, alert } = alerts()
    const durably = bench.open()
    const job = durably.register({ job: failingJob(alert) }).job
    const events = recordEvents(durably, ['run:trigger'])
    durably.start()
    const { id } = await job.trigger({}, { tenant: 'a', labels: { customer: '7' } })
    await settled()
    await settled()
    const { stack: _stack, ...errorDetail } = told[0]?.errorDetail ?? { name: '' }
    expect([{ ...told[0], errorDetail }, told.length]).toEqual([
      {
        ...{ runId: id, jobName: 'import', jobVersion: 'v2', status: 'failed', error: 'boom', attempt: 1, tenant: 'a' },
        labels: { customer: '7' },
        errorDetail: { name: 'TypeError', stepName: 'fetch' },
      },
      1,
    ])
    const [called] = await durably.getRuns({ jobName: 'alert' })
    expect(called).toMatchObject({ status: 'completed', parentRunId: id, tenant: 'a', labels: {} })
    expect(events.map(({ jobName }) => jobName)).toEqual(['import', 'alert'])
  })

  it('is called when a run times out, not when it is retried or cancelled, and again after a retry by hand', async () => {
    const { told, alert } = alerts()
    const durably = bench.open({ concurrency: 3 })
    const slow = durably.register({ job: failingJob(alert, 1000) }).job
    const quick = durably.defineJob(
      { name: 'quick', input: anything, retry: { maxAttempts: 2, delay: 100 }, onFailure: alert },
      () => {
        throw new Error('boom')
      },
    )
    durably.start()
    const [late, asked, failed] = [await slow.trigger({}), await slow.trigger({}), await quick.trigger({})]
    await settled()
    await durably.cancel(asked.id)
    await bench.clock.advance(1000)
    await settled()
    expect(told.map(({ runId, status, attempt }) => [runId, status, attempt])).toEqual([
      [failed.id, 'failed', 2],
      [late.id, 'timed_out', 1],
    ])
    await durably.retry(failed.id)
    await bench.clock.advance(1000)
    expect(told.slice(2).map(({ runId, attempt }) => [runId, attempt])).toEqual([[failed.id, 4]])
  })

  it('is called for a run that lost its workers too often, whoever finds it', async () => {
    const { told, alert } = alerts()
    const deadly = defineJob({ name: 'deadly', input: anything, onFailure: alert, retry: { maxAttempts: 9 } }, () => {
      return new Promise(() => {})
    })
    const observer = bench.open({ maxCrashes: 2 })
    const { id } = await observer.trigger(deadly, {})
    for (const workerId of ['one', 'two']) {
      const mortal = createMortal(bench.storage)
      const worker = bench.open({ storage: mortal.storage, workerId })
      worker.register({ deadly })
      worker.start()
      await settled()
      mortal.kill()
      // It knows no job at all.
      await observer.recover({ workerId })
      await bench.clock.advance(10_000)
    }
    expect(found(await observer.getRun(id))).toMatchObject({ status: 'pending', crashCount: 2 })
    const last = bench.open({ maxCrashes: 2 })
    last.register({ deadly })
    last.start()
    await settled()
    await settled()
    const error = expect.stringContaining('lost its worker 2 times in a row')
    expect(found(await observer.getRun(id))).toMatchObject({
      status: 'failed',
      error,
      errorDetail: { code: 'crash_limit' },
    })
    expect(told).toMatchObject([{ runId: id, status: 'failed', error, errorDetail: { code: 'crash_limit' } }])
  })

  it('calls nobody itself when it fails', async () => {
    const durably = bench.open()
    const broken = defineJob({ name: 'broken', input: failedRun }, () => {
      throw new Error('no mail server')
    })
    const job = durably.register({ job: failingJob(broken) }).job
    durably.start()
    await job.trigger({})
    await settled()
    await settled()
    expect((await durably.getRuns()).map(({ jobName, status }) => [jobName, status])).toEqual([
      ['broken', 'failed'],
      ['import', 'failed'],
    ])
  })

  it('is stored for others where it is only declared', async () => {
    const durably = bench.open()
    const alert = declareJob({ name: 'alert', input: failedRun })
    const job = durably.defineJob({ name: 'job', input: anything, onFailure: alert }, () => {
      throw new Error('boom')
    })
    durably.start()
    const { id } = await job.trigger({})
    await settled()
    expect(await durably.getRuns({ jobName: 'alert' })).toMatchObject([{ status: 'pending', parentRunId: id }])
  })
})

describe('what onFailure refuses', () => {
  it('is a handler with a handler, by value and by name', () => {
    const { alert } = alerts()
    const chained = failingJob(alert) as unknown as typeof alert
    expect(() => failingJob(chained)).toThrow('calls job "import", which must not have an onFailure of its own')
    const first = defineJob({ name: 'first', input: anything, onFailure: alert }, () => {})
    const second = defineJob(
      { name: 'alert', input: anything, onFailure: defineJob({ name: 'x', input: anything }, () => {}) },
      () => {},
    )
    expect(() => bench.open().register({ first, second })).toThrow('Job "first": onFailure calls job "alert"')
  })

  it('is a name, or what is no job', () => {
    for (const onFailure of ['alert', {}, null]) {
      const options = { name: 'job', input: anything, onFailure } as never
      expect(() => defineJob(options, () => {})).toThrow('Job "job": onFailure must be a job')
    }
  })

  it('is a job whose input is something else, for the compiler', () => {
    const other = declareJob<'other', { readonly amount: number }, { readonly amount: number }>({
      ...{ name: 'other', input: anything as never },
    })
    // @ts-expect-error A failed run has no amount.
    defineJob({ name: 'job', input: anything, onFailure: other }, () => {})
    expectTypeOf(alerts().alert).toEqualTypeOf<JobDefinition<'alert', FailedRun, void>>()
  })
})
