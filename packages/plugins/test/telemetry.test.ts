import { context, SpanStatusCode, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import { createMemoryStorage } from '@coji/durably-core/memory'
import { defineJob, type Durably, failedRun } from '@coji/durably-core'
import { createFakeClock } from '@coji/durably-core/testing'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { withTelemetry } from '../src/telemetry'
import { anything, instance } from './job-instance'

beforeAll(() => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
})

afterAll(() => context.disable())

/** The real SDK with exporters in memory, and instances on one storage. */
function setUp() {
  const spans = new InMemorySpanExporter()
  const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] })
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const meterProvider = new MeterProvider({ readers: [new PeriodicExportingMetricReader({ exporter })] })
  onTestFinished(() => meterProvider.shutdown())
  const clock = createFakeClock()
  const storage = createMemoryStorage({ now: clock.now })
  const open = (): Durably => {
    return instance({ storage, environment: { clock } }).use(withTelemetry({ tracerProvider, meterProvider }))
  }
  const tracer = tracerProvider.getTracer('test')
  /** Does it in a span of the application. */
  const inSpan = async <T>(work: () => Promise<T>) => {
    const span = tracer.startSpan('request')
    const result = await context.with(trace.setSpan(context.active(), span), work)
    span.end()
    return { result, span: span.spanContext() }
  }
  const found = (name: string) => spans.getFinishedSpans().filter((span) => span.name === name)
  const numbers = async (name: string) => {
    await meterProvider.forceFlush()
    const metrics =
      exporter
        .getMetrics()
        .at(-1)
        ?.scopeMetrics.flatMap((scope) => scope.metrics) ?? []
    return metrics.find(({ descriptor }) => descriptor.name === name)?.dataPoints ?? []
  }
  return { clock, storage, open, inSpan, found, numbers, names: () => spans.getFinishedSpans().map(({ name }) => name) }
}

const parentOf = (span: ReadableSpan | undefined) => span?.parentSpanContext?.spanId

describe('withTelemetry', () => {
  it('has spans of run, attempt and steps in the trace of the trigger, over a wait and another process', async () => {
    const { clock, open, inSpan, found } = setUp()
    const [api, worker] = [open(), open()]
    worker.defineJob({ name: 'mail', input: anything }, async (ctx) => {
      await ctx.run('write', () => 1)
      await ctx.sleep('nap', 60_000)
      await ctx.run('send', () => 2)
    })
    const { result, span } = await inSpan(() => api.trigger('mail', {}, { tenant: 'acme' }))
    const resting = worker.runUntilIdle()
    await clock.advance(0)
    await resting
    await clock.advance(60_000)
    await worker.runUntilIdle()
    const [first, second] = found('attempt mail')
    expect([first, second].map((each) => [parentOf(each), each?.attributes['durably.outcome']])).toEqual([
      [span.spanId, 'suspend'],
      [span.spanId, 'completed'],
    ])
    expect(first?.attributes).toMatchObject({
      'durably.run': result.id,
      'durably.tenant': 'acme',
      'durably.attempt': 1,
    })
    const [run] = found('run mail')
    expect([parentOf(run), run?.spanContext().traceId]).toEqual([span.spanId, span.traceId])
    expect(parentOf(found('step write')[0])).toBe(first?.spanContext().spanId)
    expect(parentOf(found('step send')[0])).toBe(second?.spanContext().spanId)
    expect((await api.storage.getRun(result.id))?.traceParent).toBe(`00-${span.traceId}-${span.spanId}-01`)
  })

  it('says what failed, and takes what a run triggers, or its failure calls, along', async () => {
    const { open, inSpan, found } = setUp()
    const durably = open()
    const alert = defineJob({ name: 'alert', input: failedRun }, () => {})
    const child = durably.defineJob({ name: 'child', input: anything }, () => {})
    const job = durably.defineJob({ name: 'mail', input: anything, onFailure: alert }, async (ctx) => {
      await ctx.trigger('child', child, {})
      await ctx.run('send', () => {
        throw new Error('no server')
      })
    })
    const { span } = await inSpan(() => job.trigger({}))
    await durably.runUntilIdle()
    for (const name of ['step send', 'attempt mail', 'run mail']) {
      expect(found(name)[0]?.status).toEqual({ code: SpanStatusCode.ERROR, message: 'no server' })
    }
    const [attempt] = found('attempt mail')
    expect(parentOf(found('attempt child')[0])).toBe(attempt?.spanContext().spanId)
    expect(parentOf(found('attempt alert')[0])).toBe(span.spanId)
  })

  it('begins a trace where nobody had one, and ends what was left where it is', async () => {
    const { clock, open, found } = setUp()
    const durably = open()
    durably.defineJob({ name: 'slow', input: anything, timeout: 1000 }, (ctx) =>
      ctx.run('hang', () => new Promise(() => {})),
    )
    const run = await durably.trigger('slow')
    expect((await durably.storage.getRun(run.id))?.traceParent).toBeNull()
    const draining = durably.runUntilIdle()
    await clock.advance(10_000)
    await draining
    const [attempt] = found('attempt slow')
    expect(parentOf(attempt)).toBeUndefined()
    expect(attempt?.attributes['durably.outcome']).toBe('timed_out')
    expect(found('step hang')[0]?.attributes['durably.step.abandoned']).toBe(true)
  })

  it('counts runs by how they ended, those in hand, and measures steps and the queue', async () => {
    const { clock, open, numbers } = setUp()
    const durably = open()
    const job = durably.defineJob(
      { name: 'mail', input: anything, retry: { maxAttempts: 2, delay: 0 } },
      async (ctx) => {
        await ctx.run('send', () => {
          if (ctx.attempt === 1) throw new Error('no server')
        })
      },
    )
    await job.trigger({})
    await durably.cancel((await job.trigger({})).id)
    await clock.advance(5000)
    await durably.runUntilIdle()
    const ended = await numbers('durably.runs.ended')
    expect(ended.map(({ attributes, value }) => [attributes, value])).toEqual([
      [{ 'durably.job': 'mail', 'durably.status': 'cancelled' }, 1],
      [{ 'durably.job': 'mail', 'durably.status': 'completed' }, 1],
    ])
    expect((await numbers('durably.runs.active')).map(({ value }) => value)).toEqual([0])
    expect(await numbers('durably.run.queue_latency')).toMatchObject([{ value: { count: 1, sum: 5 } }])
    const steps = await numbers('durably.step.duration')
    expect(steps.map(({ attributes }) => attributes['durably.status'])).toEqual(['failed', 'completed'])
  })

  it('asks nobody and keeps nothing where it is not used', async () => {
    const { storage, inSpan } = setUp()
    const durably = instance({ storage })
    const { result } = await inSpan(() => durably.trigger('mail'))
    expect((await storage.getRun(result.id))?.traceParent).toBeNull()
  })
})
