import { afterEach, beforeEach, describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import {
  type BatchTriggerInput,
  type ChildResult,
  type ChildRuns,
  type CompletedRun,
  declareJob,
  defineJob,
  type DurablyEvent,
  type JobContext,
  type JobHandle,
  type NotStorable,
  type Run,
  type RunFilter,
  type RunStatus,
  type StepBody,
  type Storable,
  type TriggeredRun,
  type TriggerOptions,
} from '../index'
import { type Bench, createBench } from '../testing/test-bench'

let bench: Bench

beforeEach(() => {
  bench = createBench()
})

afterEach(() => bench.close())

interface User {
  readonly id: number
}

function syncUsers() {
  const durably = bench.open()
  const job = durably.defineJob(
    {
      name: 'sync-users',
      input: z.object({ orgId: z.string(), force: z.boolean().optional(), page: z.number().default(1) }),
      output: z.object({ syncedCount: z.number(), at: z.string().optional() }),
    },
    async (ctx, payload) => {
      expectTypeOf(payload).toEqualTypeOf<{ orgId: string; force?: boolean | undefined; page: number }>()
      const users = await ctx.run('fetch', async (): Promise<User[]> => [{ id: 1 }])
      expectTypeOf(users).toEqualTypeOf<User[]>()
      const count = await ctx.run<number>('count', async () => users.length)
      expectTypeOf(count).toEqualTypeOf<number>()
      const nothing = await ctx.run('nothing', () => {})
      expectTypeOf(nothing).toEqualTypeOf<void>()
      const text = await ctx.run('with options', { once: true }, () => 'text')
      expectTypeOf(text).toEqualTypeOf<string>()
      return { syncedCount: count }
    },
  )
  return { durably, job }
}

describe('types', () => {
  it('of a job are inferred from its schemas', async () => {
    const { durably, job } = syncUsers()
    expectTypeOf(job).toExtend<
      JobHandle<'sync-users', { orgId: string }, { syncedCount: number; at?: string | undefined }>
    >()
    expectTypeOf(job.name).toEqualTypeOf<'sync-users'>()
    expectTypeOf(job.trigger)
      .parameter(0)
      .toEqualTypeOf<{ orgId: string; force?: boolean | undefined; page?: number | undefined }>()
    expectTypeOf(job.trigger).parameter(1).toEqualTypeOf<TriggerOptions | undefined>()
    expectTypeOf(job.batchTrigger).parameter(0).items.toExtend<BatchTriggerInput<{ orgId: string }>>()
    durably.start()
    const { output, id } = await job.triggerAndWait({ orgId: 'org' })
    expectTypeOf(output).toEqualTypeOf<{ syncedCount: number; at?: string | undefined }>()
    expectTypeOf(id).toEqualTypeOf<string>()
    expect(output).toEqual({ syncedCount: 1 })
  })

  it('of a run are told apart by its status', async () => {
    const { durably, job } = syncUsers()
    durably.start()
    const { id } = await job.triggerAndWait({ orgId: 'org' })
    const run = await job.getRun(id)
    expectTypeOf(run).toEqualTypeOf<Run<{ syncedCount: number; at?: string | undefined }> | null>()
    if (run?.status === 'completed') {
      expectTypeOf(run.output.syncedCount).toEqualTypeOf<number>()
      expectTypeOf(run.error).toEqualTypeOf<null>()
    } else if (run?.status === 'failed' || run?.status === 'timed_out') {
      expectTypeOf(run.error).toEqualTypeOf<string>()
      expectTypeOf(run.output).toEqualTypeOf<null>()
    } else if (run !== null) {
      expectTypeOf(run.output).toEqualTypeOf<null>()
      expectTypeOf(run.status).toEqualTypeOf<'pending' | 'assigned' | 'running' | 'cancelled' | 'orphaned'>()
    }
    const unknown = await durably.getRun(id)
    if (unknown?.status === 'completed') expectTypeOf(unknown.output).toEqualTypeOf<unknown>()
    expectTypeOf(await job.getRuns()).items.toEqualTypeOf<Run<{ syncedCount: number; at?: string | undefined }>>()
    expectTypeOf(await durably.getRuns()).items.toEqualTypeOf<Run>()
    expectTypeOf<TriggeredRun<number>['deduplicated']>().toEqualTypeOf<boolean>()
    expectTypeOf<CompletedRun<number>['output']>().toEqualTypeOf<number>()
    expectTypeOf<RunFilter['status']>().toEqualTypeOf<RunStatus | readonly RunStatus[] | undefined>()
    expect(run?.progress ?? null).toBeNull()
  })

  it('of a job without an output schema follow from what it returns', async () => {
    const durably = bench.open()
    const async = defineJob({ name: 'async', input: z.string() }, async (_ctx, text) => ({ length: text.length }))
    const sync = defineJob({ name: 'sync', input: z.number() }, (_ctx, n) => n > 0)
    const none = defineJob({ name: 'none', input: z.undefined() }, async () => {})
    const declared = declareJob({
      name: 'declared',
      input: z.object({ page: z.number().default(1) }),
      output: z.string(),
    })
    const unsaid = declareJob({ name: 'unsaid', input: z.string() })
    const declarations = durably.register({ declared, unsaid })
    expectTypeOf(declarations.declared).toEqualTypeOf<JobHandle<'declared', { page?: number | undefined }, string>>()
    expectTypeOf(declarations.unsaid).toEqualTypeOf<JobHandle<'unsaid', string, unknown>>()
    const handles = durably.register({ async, sync, none })
    expectTypeOf(handles.async).toEqualTypeOf<JobHandle<'async', string, { length: number }>>()
    expectTypeOf(handles.sync).toEqualTypeOf<JobHandle<'sync', number, boolean>>()
    expectTypeOf(handles.none).toEqualTypeOf<JobHandle<'none', undefined, void>>()
    durably.start()
    expect((await handles.async.triggerAndWait('four')).output).toEqual({ length: 4 })
  })

  it('of many children follow from their job', async () => {
    const durably = bench.open({ concurrency: 3 })
    const length = defineJob({ name: 'length', input: z.string() }, (_ctx, text) => text.length)
    const handle = durably.register({ length }).length
    const parent = durably.defineJob({ name: 'parent', input: z.undefined() }, async (ctx) => {
      const runs = await ctx.triggerAll('start', length, ['a', 'bb'], { limit: 2 })
      expectTypeOf(runs).toEqualTypeOf<ChildRuns<number>>()
      const more = await ctx.triggerAll('more', handle, ['ccc'])
      const outputs = await ctx.waitAll('outputs', runs)
      expectTypeOf(outputs).toEqualTypeOf<number[]>()
      const results = await ctx.waitAll('results', more, { failures: 'values' })
      expectTypeOf(results).toEqualTypeOf<ChildResult<number>[]>()
      const one = await ctx.trigger('one', length, 'dddd')
      const listed = await ctx.waitAll('listed', [one], { from: 0, count: 1 })
      expectTypeOf(listed).toEqualTypeOf<number[]>()
      return [...outputs, ...results.map((result) => (result.ok ? result.output : result.error)), ...listed]
    })
    const wrong = (ctx: JobContext) => {
      // @ts-expect-error the payloads are texts
      void ctx.triggerAll('start', length, [1])
      // @ts-expect-error many runs have many keys
      void ctx.triggerAll('start', length, ['a'], { idempotencyKey: 'k' })
    }
    expect(wrong).toBeTypeOf('function')
    durably.start()
    const { id } = await parent.trigger(undefined)
    for (let round = 0; round < 20; round++) await bench.clock.advance(10)
    expect((await parent.getRun(id))?.output).toEqual([1, 2, 3, 4])
  })

  it('of events are told apart by their type', () => {
    const durably = bench.open()
    durably.on('run:fail', (event) => {
      expectTypeOf(event.failedStepName).toEqualTypeOf<string | null>()
      expectTypeOf(event.error).toEqualTypeOf<string>()
    })
    durably.on('step:complete', (event) => {
      expectTypeOf(event.output).toEqualTypeOf<unknown>()
      expectTypeOf(event.duration).toEqualTypeOf<number>()
      expectTypeOf(event.stepIndex).toEqualTypeOf<number>()
    })
    durably.on('log:write', (event) => {
      expectTypeOf(event.level).toEqualTypeOf<'info' | 'warn' | 'error'>()
      expectTypeOf(event.stepName).toEqualTypeOf<string | null>()
      expectTypeOf(event.data).toEqualTypeOf<unknown>()
    })
    const describeIt = (event: DurablyEvent): string => {
      switch (event.type) {
        case 'run:complete':
          return `${event.jobName} ${String(event.output)}`
        case 'log:write':
          return event.message
        default:
          return event.type
      }
    }
    expect(describeIt({ type: 'job:unknown', jobName: 'x', timestamp: '', sequence: 1 })).toBe('job:unknown')
  })

  it('refuse payloads and outputs that JSON cannot keep', () => {
    interface Tree {
      readonly name: string
      readonly children: readonly Tree[]
    }
    const tree = z.custom<Tree>()
    class Money {
      readonly amount = 1
      plus = () => this
    }
    const good = [
      z.object({ a: z.string().brand<'A'>(), b: z.number().optional(), c: z.array(z.enum(['x'])), d: z.unknown() }),
      z.union([tree, z.json(), z.any(), z.null(), z.record(z.string(), z.tuple([z.literal(1), z.boolean()]))]),
      z.date().transform((date) => date.toISOString()),
      z.undefined(),
    ] as const
    const wrong = () => {
      for (const [index, input] of good.entries())
        defineJob({ name: `good ${index}`, input }, (_ctx, payload) => payload)
      defineJob({ name: 'tree', input: tree, output: tree }, (_ctx, payload) => payload)
      // @ts-expect-error a Date is not JSON
      defineJob({ name: 'bad', input: z.object({ since: z.coerce.date() }) }, () => {})
      // @ts-expect-error a bigint is not JSON
      defineJob({ name: 'bad', input: z.object({ list: z.array(z.object({ big: z.bigint().optional() })) }) }, () => {})
      // @ts-expect-error a Map is not JSON
      defineJob({ name: 'bad', input: z.map(z.string(), z.string()), output: z.object({}) }, () => ({}))
      // @ts-expect-error an object with methods is not JSON
      defineJob({ name: 'bad', input: z.instanceof(Money) }, () => {})
      // @ts-expect-error nor may an output be a Date
      bench.open().defineJob({ name: 'bad', input: z.object({}), output: z.date() }, () => new Date())
    }
    expect(wrong).toBeTypeOf('function')
    expectTypeOf<Storable<Tree>>().toExtend<Tree>()
    expectTypeOf<Storable<{ at: Date }>['at']>().toExtend<NotStorable<string>>()
  })

  it('refuse what is wrong before it runs', () => {
    const durably = bench.open()
    const { job } = syncUsers()
    const wrong = () => {
      // @ts-expect-error the payload needs orgId
      void job.trigger({})
      // @ts-expect-error orgId is a string
      void job.trigger({ orgId: 1 })
      // @ts-expect-error there is no such option
      void job.trigger({ orgId: 'a' }, { idempotenceKey: 'k' })
      // @ts-expect-error there is no such status
      void durably.getRuns({ status: 'done' })
      // @ts-expect-error there is no such event
      durably.on('run:finish', () => {})
      // @ts-expect-error the function does not return what the schema takes
      durably.defineJob({ name: 'bad', input: z.object({}), output: z.object({ n: z.number() }) }, () => ({ n: 'one' }))
      // @ts-expect-error the payload needs orgId, also when the instance triggers it
      void durably.trigger(job, {})
      // @ts-expect-error a declared job has no retries of its own
      declareJob({ name: 'bad', input: z.object({}), retry: { maxAttempts: 2 } })
      expectTypeOf(durably.trigger('sync-users', { whatever: 1 })).resolves.toEqualTypeOf<TriggeredRun>()
      expectTypeOf(durably.trigger(job, { orgId: 'a' })).resolves.toEqualTypeOf<
        TriggeredRun<{ syncedCount: number; at?: string | undefined }>
      >()
      // @ts-expect-error the tenant of a scope cannot be chosen again
      void durably.scoped({ tenant: 't' }).trigger(job, { orgId: 'a' }, { tenant: 'other' })
    }
    expect(wrong).toBeTypeOf('function')
    expectTypeOf<StepBody<number>>().toBeCallableWith(expect.anything())
  })
})
