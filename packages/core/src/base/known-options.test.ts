import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  createDurably,
  declareJob,
  defineJob,
  type Durably,
  InvalidOptionError,
  type JobContext,
  type JobHandle,
  RetryAfterError,
} from '../index'
import { createMemoryStorage } from '../memory/memory-storage'
import { refuseUnknownOptions } from '../extend'
import { anything, type Bench, createBench } from '../testing/test-bench'

let bench: Bench

beforeEach(() => {
  bench = createBench()
})

afterEach(() => bench.close())

/** As JavaScript passes them, or a value that the compiler did not look at. */
const misspelled = (options: object): never => options as never

const policy = { maxAttempts: 2 }
const other = defineJob({ name: 'other', input: anything }, () => 1)

describe('an option that nobody knows', () => {
  const { storage } = createBench()
  const define = (options: object) => () => defineJob(misspelled({ name: 'job', input: anything, ...options }), () => 1)

  const definitions: [string, () => unknown, string][] = [
    ['an instance', () => createDurably(misspelled({ storage, concurency: 2 })), 'Did you mean "concurrency"?'],
    ['a memory storage', () => createMemoryStorage(misspelled({ keepended: 5 })), 'Did you mean "keepEnded"?'],
    ['an environment', () => bench.open({ environment: misspelled({ clok: 1 }) }), 'Did you mean "clock"?'],
    ['a job', define({ retries: policy }), 'defineJob() of "job" knows no option "retries". Did you mean "retry"?'],
    ['a declared job', () => declareJob(misspelled({ name: 'job', inputs: anything })), 'Did you mean "input"?'],
    ['the function of a declared job', () => declareJob(misspelled({ name: 'a', input: anything, run: 1 })), '"run"'],
    ['a retry policy', define({ retry: { maxAttempt: 1 } }), 'Job "job": retry knows no option "maxAttempt".'],
    ['a growing delay', define({ retry: { ...policy, delay: { upto: 5 } } }), 'Did you mean "upTo"?'],
    ['a rate limit', define({ rateLimit: { max: 1, pr: 5 } }), 'Did you mean "per"?'],
    ['a history', () => bench.open().use({ name: 'p', records: misspelled({ log: true }) }), 'Did you mean "logs"?'],
    ['a scope', () => bench.open().scoped(misspelled({ tennant: 'a' })), 'Did you mean "tenant"?'],
    ['a subscription', () => bench.open().subscribe('id', misspelled({ since: 4 })), 'There are after, signal.'],
  ]

  it.each(definitions)('of %s is an error that names it and the nearest one', (_of, call, message) => {
    expect(call).toThrow(InvalidOptionError)
    expect(call).toThrow(message)
  })

  const calls: [string, (durably: Durably, job: JobHandle) => Promise<unknown>, string][] = [
    [
      'a trigger',
      (_durably, job) => job.trigger({}, misspelled({ idempotancyKey: 'k' })),
      'Did you mean "idempotencyKey"?',
    ],
    ['a trigger by name', (durably) => durably.trigger('job', {}, misspelled({ dealy: 1 })), 'Did you mean "delay"?'],
    ['triggerAndWait', (_durably, job) => job.triggerAndWait({}, misspelled({ timout: 1 })), 'Did you mean "timeout"?'],
    ['wait', (_durably, job) => job.wait('id', misspelled({ timoeut: 1 })), 'Did you mean "timeout"?'],
    ['an item', (_durably, job) => job.batchTrigger([misspelled({ orgId: 1 })]), 'There are payload, options.'],
    ['a filter', (durably) => durably.getRuns(misspelled({ jobname: 'job' })), 'Did you mean "jobName"?'],
    ['a count', (durably) => durably.counts(misspelled({ limit: 1 })), 'counts() knows no option "limit".'],
    ['a page', (durably) => durably.getLogs('id', misspelled({ afer: 'x' })), 'Did you mean "after"?'],
    ['purge', (durably) => durably.purge(misspelled({ olderthan: 1 })), 'Did you mean "olderThan"?'],
    [
      'a signal',
      (durably) => durably.signal('id', 'go', 1, misspelled({ dedupekey: 'k' })),
      'Did you mean "dedupeKey"?',
    ],
    ['stop', (durably) => durably.stop(misspelled({ timeoutMs: 1 })), 'Did you mean "timeout"?'],
    ['stop with nothing', (durably) => durably.stop(null as never), 'stop() takes its options as an object, not null.'],
    ['runUntilIdle', (durably) => durably.runUntilIdle(misspelled({ budget: 1 })), 'Did you mean "budgetMs"?'],
    ['recover', (durably) => durably.recover(misspelled({ worker: 'w' })), 'Did you mean "workerId"?'],
  ]

  it.each(calls)('of %s is one, before anything happens', async (_of, call, message) => {
    const durably = bench.open()
    const job = durably.defineJob({ name: 'job', input: anything }, () => 1)
    await expect(call(durably, job)).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining(message),
    })
    expect(await durably.getRuns()).toEqual([])
  })

  it.each([
    ['run', { timout: 1 }, 'Did you mean "timeout"?'],
    ['stream', { once: true }, 'ctx.stream("s") knows no option "once".'],
    ['transaction', { timout: 1 }, 'Did you mean "timeout"?'],
    ['waitFor', { shema: anything }, 'Did you mean "schema"?'],
    ['trigger', { tenant: 'other' }, 'ctx.trigger("s") takes no tenant: a child belongs to the tenant of its parent.'],
    ['triggerAll', { tenant: 'other' }, 'ctx.triggerAll("s") takes no tenant: a child'],
    ['trigger', { prioriti: 1 }, 'Did you mean "priority"?'],
  ] as const)('of ctx.%s fails the run, which names it', async (call, options, message) => {
    const { run } = await bench.perform((ctx) => {
      const given = misspelled(options)
      if (call === 'waitFor') return ctx.waitFor('s', given)
      if (call === 'trigger') return ctx.trigger('s', other, {}, given)
      if (call === 'triggerAll') return ctx.triggerAll('s', other, [{}], given)
      if (call === 'stream') return ctx.stream('s', given, () => 1)
      return call === 'run' ? ctx.run('s', given, () => 1) : ctx.transaction('s', given, () => 1)
    })
    expect(run).toMatchObject({ status: 'failed', error: expect.stringContaining(message) })
  })

  it.each([
    ['tenant', 'runAt'],
    ['key', 'per'],
    ['tag', 'max'],
    ['size', 'type'],
  ])('is not taken for one that has nothing in common with it: %s', (name, known) => {
    expect(() => refuseUnknownOptions('withThing()', { [name]: 1 }, { [known]: true })).toThrow(`There are ${known}.`)
  })

  it('of a call of ctx rejects it, so that nobody misses the calls beside it', async () => {
    const nothing = undefined as never
    const bad = (ctx: JobContext): (() => Promise<unknown>)[] => [
      () => ctx.run('run', misspelled({ timout: 1 }), () => 1),
      () => ctx.run('no body', nothing),
      () => ctx.stream('stream', misspelled({ once: true }), () => 1),
      () => ctx.transaction('transaction', misspelled({ timout: 1 }), () => 1),
      () => ctx.sleep('sleep', -1),
      () => ctx.waitFor('waitFor', misspelled({ shema: anything })),
      () => ctx.trigger('trigger', nothing, {}),
      () => ctx.wait('wait', nothing),
      () => ctx.triggerAll('triggerAll', nothing, []),
      () => ctx.waitAll('waitAll', nothing),
    ]
    const codes: unknown[] = []
    const { now } = await bench.perform(async (ctx) => {
      const calls = bad(ctx).map((call) => call())
      for (const { reason } of (await Promise.allSettled(calls)) as PromiseRejectedResult[]) codes.push(reason.code)
    })
    await bench.clock.advance(1)
    expect(await now()).toMatchObject({ status: 'completed' })
    expect(codes).toEqual(Array(10).fill('INVALID_OPTION'))
  })

  it('is one also when it is undefined: it is spelled as wrongly', async () => {
    const job = bench.open().defineJob({ name: 'job', input: anything }, () => 1)
    await expect(job.trigger({}, misspelled({ idempotancyKey: undefined }))).rejects.toThrow('idempotencyKey')
  })

  it('is one of a plugin too that asks for it', () => {
    expect(() => refuseUnknownOptions('withThing()', { evry: 1 }, { every: true })).toThrow(
      'withThing() knows no option "evry". Did you mean "every"?',
    )
    expect(() => refuseUnknownOptions('withThing()', 5 as never, { every: true })).toThrow(
      'withThing() takes its options as an object, not 5.',
    )
    // What every object has is no name of an option.
    expect(() => refuseUnknownOptions('withThing()', { constructor: 1 }, { every: true })).toThrow('"constructor"')
  })
})

describe('what is no object of options', () => {
  class Options {
    every = 1
    method() {}
  }

  it.each([
    [[], 'a value of type Array'],
    [new Date(0), 'a value of type Date'],
    [new Map(), 'a value of type Map'],
    [new Set(), 'a value of type Set'],
    [Promise.resolve({}), 'a value of type Promise'],
    [new AbortController().signal, 'a value of type AbortSignal'],
    ['secret', 'a text'],
    [null, 'null'],
  ])('is refused, since it would be taken for no options at all: %o', (given, found) => {
    expect(() => refuseUnknownOptions('withThing()', given as never, { every: true })).toThrow(
      `withThing() takes its options as an object, not ${found}.`,
    )
  })

  it.each([{}, Object.create(null), new Options(), Object.freeze({ every: 1 }), new Proxy({}, {})])(
    'is not %o',
    (given) => {
      expect(() => refuseUnknownOptions('withThing()', given as never, { every: true })).not.toThrow()
    },
  )

  it('removes, reads and ends nothing', async () => {
    const durably = bench.open()
    const job = durably.defineJob({ name: 'job', input: anything }, () => 1)
    const { id } = await job.trigger({})
    await durably.cancel(id)
    for (const given of [[], new Date(0), new Map()].map(misspelled)) {
      await expect(durably.purge(given)).rejects.toThrow('purge() takes its options as an object')
      await expect(job.getRuns(given)).rejects.toThrow('getRuns() takes its options as an object')
      await expect(durably.scoped({ tenant: 'a' }).trigger(job, {}, given)).rejects.toThrow(
        'trigger() takes its options',
      )
    }
    expect(await durably.getRuns()).toHaveLength(1)
  })
})

describe('a storage that is none', () => {
  it.each([
    [undefined, 'storage must be a Storage, for example createMemoryStorage()'],
    ['postgres://me:secret@host', 'not a string.'],
    [Promise.resolve({}), 'storage is a promise: await it before createDurably().'],
    [{ migrate: async () => {} }, 'storage is no Storage: it has no enqueue(), claim(), commit()'],
  ])('is refused at once: %o', (storage, message) => {
    expect(() => createDurably({ storage: storage as never })).toThrow(message)
  })
})

describe('a value that makes no sense', () => {
  const storage = createMemoryStorage()
  const open = (options: object) => () => createDurably({ storage, ...options })
  const memory = (options: object) => () => createMemoryStorage(options)
  const after = (when: unknown) => () => new RetryAfterError('later', when as number)

  it.each<[string, () => unknown, string]>([
    ['a logger', open({ logger: 5 }), 'logger must have a method error(), as console has it, or be null for none.'],
    ['a logger without error()', open({ logger: {} }), 'logger must have a method error()'],
    ['keepEnded', memory({ keepEnded: Number.NaN }), 'keepEnded must be an integer from 0, or Infinity, not NaN.'],
    ['less than nothing', memory({ keepEnded: -1 }), 'not -1.'],
    ['a clock', memory({ now: 5 }), 'now must be a function'],
    ['a delay', after(-1), 'RetryAfterError needs milliseconds from 0, or a Date, not -1.'],
    ['NaN', after(Number.NaN), 'not NaN.'],
    ['an endless delay', after(Number.POSITIVE_INFINITY), 'not Infinity.'],
    ['no Date', after(new Date(Number.NaN)), 'not Invalid Date.'],
    ['a text', after('soon'), 'not soon.'],
    ['nothing', after(undefined), 'not undefined.'],
  ])('is refused as %s', (_what, make, message) => {
    expect(make).toThrow(InvalidOptionError)
    expect(make).toThrow(message)
  })

  it('is no past instant to try again at, or a logger with more', () => {
    expect(new RetryAfterError('later', new Date(0)).retryAfterMs).toBe(0)
    for (const logger of [console, null, undefined]) expect(open({ logger })).not.toThrow()
  })

  it('is refused as the key of a signal', async () => {
    const durably = createDurably({ storage })
    await expect(durably.signal('id', 'go', 1, { dedupeKey: '' })).rejects.toThrow('dedupeKey must not be empty')
  })
})
