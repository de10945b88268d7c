import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { describeError, describeFailure, errorFrom } from '../base/describe-error'
import {
  CancelledError,
  CapabilityMissingError,
  ConflictError,
  defineJob,
  DurablyError,
  InterruptedError,
  InvalidOptionError,
  type JobContext,
  NotFoundError,
  PayloadTooLargeError,
  PermanentError,
  RetryAfterError,
  type Run,
  RunFailedError,
  SerializationError,
  StepError,
  StorageError,
  TimeoutError,
  UnknownOutcomeError,
  ValidationError,
} from '../index'
import { settled } from '../testing/fake-clock'
import { anything, type Bench, createBench, found } from '../testing/test-bench'

let bench: Bench

beforeEach(() => {
  bench = createBench()
})

afterEach(() => bench.close())

/** What the job caught of one step on its first pass, and again on the next, in the order of the passes. */
async function catchTwice(fail: (ctx: JobContext) => Promise<unknown>): Promise<readonly unknown[]> {
  const caught: unknown[] = []
  const { now } = await bench.perform(async (ctx) => {
    await fail(ctx).catch((error: unknown) => caught.push(error))
    await ctx.sleep('in between', 1000)
  })
  await bench.clock.advance(5000)
  expect(await now()).toMatchObject({ status: 'completed' })
  expect(caught).toHaveLength(2)
  return caught
}

class CardDeclined extends PermanentError {
  override readonly name = 'CardDeclined'
}

/** Words of the application's own. */
class Visa extends PermanentError {
  static readonly brand = 'visa'
  static readonly kind = 'card'
  static readonly isPermanent = false
}

/** As code from before there were classes has it. */
function OldStyle(this: Error) {
  Object.assign(this, new PermanentError('no'))
}
OldStyle.prototype = Object.create(PermanentError.prototype, { constructor: { value: OldStyle } })

class OddError extends Error {
  override readonly name = 'OddError'
  readonly code = 'E_ODD'
}

const failedRun = { id: 'r', jobName: 'j', status: 'failed', error: 'why', payload: { n: 1 }, output: null } as const

const OWN: readonly (readonly [string, () => Error, new (...args: never[]) => Error, object])[] = [
  ['TimeoutError', () => new TimeoutError('late'), TimeoutError, { code: 'TIMEOUT' }],
  ['RunFailedError', () => new RunFailedError(failedRun), RunFailedError, { run: failedRun }],
  ['CancelledError', () => new CancelledError('r'), CancelledError, { runId: 'r' }],
  ['InterruptedError', () => new InterruptedError('s'), InterruptedError, { stepName: 's' }],
  ['PermanentError', () => new PermanentError('no'), PermanentError, { code: 'PERMANENT' }],
  ['RetryAfterError', () => new RetryAfterError('busy', 70), RetryAfterError, { retryAfterMs: 70 }],
  ['NotFoundError', () => new NotFoundError('gone'), NotFoundError, { code: 'NOT_FOUND' }],
  ['ConflictError', () => new ConflictError('taken', 'r', 'failed'), ConflictError, { runId: 'r', status: 'failed' }],
  ['InvalidOptionError', () => new InvalidOptionError('odd'), InvalidOptionError, { code: 'INVALID_OPTION' }],
  ['StorageError', () => new StorageError('STORAGE_FULL', 'full'), StorageError, { code: 'STORAGE_FULL' }],
  ['UnknownOutcomeError', () => new UnknownOutcomeError('it'), UnknownOutcomeError, { code: 'UNKNOWN_OUTCOME' }],
  [
    'CapabilityMissingError',
    () => new CapabilityMissingError('logs', 'x'),
    CapabilityMissingError,
    { capability: 'logs' },
  ],
  ['PayloadTooLargeError', () => new PayloadTooLargeError('x', 9, 8), PayloadTooLargeError, { bytes: 9, limit: 8 }],
  [
    'SerializationError',
    () => new SerializationError('x', { path: 'a.b', reason: 'is odd' }),
    SerializationError,
    { path: 'a.b' },
  ],
  [
    'ValidationError',
    () => new ValidationError('x', [{ path: 'a', message: 'no' }]),
    ValidationError,
    { issues: [{ path: 'a', message: 'no' }] },
  ],
]

describe('an error of durably’s own that a step throws', () => {
  it.each(OWN.map(([name, make, type, fields]) => ({ name, make, type, fields })))(
    'is the same on every pass, with its class and fields: $name',
    async ({ name, make, type, fields }) => {
      const thrown = make()
      const [first, second] = await catchTwice((ctx) => ctx.run('bad', () => Promise.reject(thrown)))
      for (const caught of [first, second]) {
        expect(caught).toBeInstanceOf(type)
        expect(caught).toBeInstanceOf(Error)
        expect(caught).toMatchObject({ ...fields, name, message: thrown.message, stack: thrown.stack })
        expect(Object.keys(caught as object).sort()).toEqual(Object.keys(thrown).sort())
      }
      expect(second).toEqual(first)
    },
  )

  it('is of the class that it extends, under its own name', async () => {
    const [first, second] = await catchTwice((ctx) =>
      ctx.run('bad', () => Promise.reject(new CardDeclined('no money'))),
    )
    expect(first).toBeInstanceOf(PermanentError)
    expect(first).toMatchObject({ name: 'CardDeclined', code: 'PERMANENT', message: 'no money' })
    expect(second).toEqual(first)
  })

  it('has a failed run with it whole when it is small, and without its payload when it is not', async () => {
    const childOf = (payload: string) => ({ ...failedRun, payload, errorDetail: { name: 'Error', stack: 'here' } })
    const small = new RunFailedError(childOf('x'))
    const large = new RunFailedError(childOf('x'.repeat(100_000)))
    const huge = new RunFailedError({ ...childOf('x'), error: 'e'.repeat(100_000) })
    const rebuilt = [small, large, huge].map((error) => {
      const { message, detail } = describeFailure(error, 'step')
      expect(JSON.stringify(detail).length).toBeLessThan(100_000)
      return (errorFrom('step', message, detail) as RunFailedError<Run & { status: 'failed' }>).run
    })
    expect(rebuilt[0]).toEqual(small.run)
    expect(rebuilt[1]).toEqual({ ...failedRun, payload: undefined, errorDetail: { name: 'Error' } })
    expect(rebuilt[2]).toBe(null)
  })

  it('is stored as nothing but JSON, whatever a subclass has made of its fields', () => {
    const odd = new ConflictError('odd', 'r')
    const get = () => {
      throw new Error('no')
    }
    Object.defineProperty(odd, 'status', { get })
    Object.assign(odd, { runId: 5n })
    const { message, detail } = describeFailure(odd, 'step')
    expect(JSON.parse(JSON.stringify(detail))).toEqual(detail)
    expect(errorFrom('step', message, detail)).toBeInstanceOf(ConflictError)
  })
})

describe('any other error that a step throws', () => {
  it('is a StepError with the original’s name, message, code and stack, on every pass', async () => {
    const thrown = new OddError('odd', { cause: new Error('inner') })
    const [first, second] = await catchTwice((ctx) => ctx.run('bad', () => Promise.reject(thrown)))
    for (const caught of [first, second]) {
      expect(caught).toBeInstanceOf(StepError)
      expect(caught).not.toHaveProperty('cause')
      expect(caught).toMatchObject({
        ...{ name: 'StepError', stepName: 'bad', originalName: 'OddError' },
        ...{ message: 'odd', code: 'E_ODD', stack: thrown.stack },
      })
    }
    expect(second).toEqual(first)
  })

  it('is told of as itself when it fails the run, whether at once or after a wait', async () => {
    const thrown = new OddError('odd')
    const { durably, job, now } = await bench.perform(async (ctx) => {
      const failure = await ctx.run('bad', () => Promise.reject(thrown)).catch((error: unknown) => error)
      if ((ctx.attempt as number) === 1) await ctx.sleep('in between', 1000)
      throw failure
    })
    const failures: unknown[] = []
    durably.on('run:fail', (event) => failures.push(event))
    await bench.clock.advance(1000)
    const recorded = { name: 'OddError', code: 'E_ODD', stack: thrown.stack, stepName: 'bad' }
    const failed = await now()
    expect(failed).toMatchObject({ status: 'failed', error: 'odd', errorDetail: recorded })
    await durably.retry(failed.id)
    await settled()
    expect(await job.getRun(failed.id)).toMatchObject({ error: 'odd', errorDetail: recorded, attempt: 2 })
    expect(failures).toMatchObject([{ error: 'odd', failedStepName: 'bad' }, { failedStepName: 'bad' }])
  })

  it('is described by what it was built from', () => {
    for (const thrown of [new OddError('odd'), new Error('plain'), 'text', 42, null, new TimeoutError('late')]) {
      const first = describeFailure(thrown, 'step')
      const again = describeFailure(errorFrom('step', first.message, first.detail), 'step')
      expect(describeError(errorFrom('step', first.message, first.detail)).detail.name).toBe(first.detail.name)
      expect({ ...again.detail, stack: 0 }).toEqual({ ...first.detail, stack: 0 })
    }
  })
})

describe('an error that a wait rejects with', () => {
  it('is a TimeoutError on every pass', async () => {
    const caught: unknown[] = []
    const { now } = await bench.perform(async (ctx) => {
      await ctx.waitFor('answer', { timeout: 1000 }).catch((error: unknown) => {
        caught.push(error)
        if (!(error instanceof TimeoutError)) throw error
      })
      await ctx.waitFor('more', { timeout: 1000 }).catch(() => {})
    })
    await bench.clock.advance(5000)
    expect(await now()).toMatchObject({ status: 'completed' })
    expect(caught).toHaveLength(2)
    expect(caught[1]).toEqual(caught[0])
  })

  it('is a RunFailedError with the child on every pass', async () => {
    const caught: unknown[] = []
    const durably = bench.open({ concurrency: 2 })
    const child = defineJob({ name: 'child', input: anything }, () => Promise.reject(new OddError('odd')))
    const parent = durably.defineJob({ name: 'parent', input: anything }, async (ctx) => {
      const run = await ctx.trigger('start', child, { n: 1 })
      await ctx.wait('end', run).catch((error: unknown) => caught.push(error))
      await ctx.sleep('in between', 1000)
    })
    durably.register({ child })
    durably.start()
    const { id } = await parent.trigger({})
    await bench.clock.advance(5000)
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed' })
    expect(caught).toHaveLength(2)
    expect(caught[0]).toBeInstanceOf(RunFailedError)
    expect(caught[0]).toMatchObject({ run: { jobName: 'child', payload: { n: 1 }, errorDetail: { code: 'E_ODD' } } })
    expect(caught[1]).toEqual(caught[0])
  })
})

describe('an error that is permanent', () => {
  const tries = async (make: () => Error, retryOf: 'step' | 'job') => {
    let count = 0
    const retry = { maxAttempts: 3, delay: 10 }
    const durably = bench.open()
    const definition = defineJob({ name: 'job', input: anything, ...(retryOf === 'job' && { retry }) }, (ctx) =>
      ctx.run('bad', retryOf === 'step' ? { retry } : {}, () => {
        count += 1
        throw make()
      }),
    )
    const { job } = durably.register({ job: definition })
    durably.start()
    await job.trigger({})
    await bench.clock.advance(1000)
    await durably.stop()
    return count
  }

  it.each(['step', 'job'] as const)('is not tried again by a %s, nor is a subclass with its own name', async (who) => {
    expect(await tries(() => new PermanentError('no'), who)).toBe(1)
    expect(await tries(() => new CardDeclined('no'), who)).toBe(1)
    expect(await tries(() => new Visa('no'), who)).toBe(1)
    expect(await tries(() => new (OldStyle as unknown as new () => Error)(), who)).toBe(1)
    expect(await tries(() => new Error('no'), who)).toBe(3)
  })

  it('stays so when the job throws what it was given after a wait', async () => {
    let bodies = 0
    const retry = { maxAttempts: 3, delay: 10 }
    const durably = bench.open()
    const definition = defineJob({ name: 'job', input: anything, retry }, async (ctx) => {
      const failure = await ctx
        .run('bad', () => {
          bodies += 1
          throw new CardDeclined('no')
        })
        .catch((error: unknown) => error)
      await ctx.sleep('in between', 1000)
      throw failure
    })
    const { id } = await durably.register({ job: definition }).job.trigger({})
    durably.start()
    await bench.clock.advance(5000)
    expect(await durably.getRun(id)).toMatchObject({ status: 'failed', attempt: 1 })
    expect(bodies).toBe(1)
  })

  it('stays so although its class is one that only a newer version knows', () => {
    const detail = { name: 'NewError', own: { kind: 'NewError' }, permanent: true } as const
    const error = errorFrom('step', 'new', detail)
    expect(error).toBeInstanceOf(StepError)
    expect(describeFailure(error, 'step').detail).toMatchObject({ permanent: true })
  })
})

describe('an error of another copy of the package', () => {
  it('counts as one of this one', async () => {
    // As an application that imports durably and requires it, too.
    vi.resetModules()
    const other = await import('../index')
    expect(other.PermanentError).not.toBe(PermanentError)
    const permanent = new other.PermanentError('no')
    expect(permanent).toBeInstanceOf(PermanentError)
    expect(permanent).toBeInstanceOf(DurablyError)
    expect(permanent).not.toBeInstanceOf(TimeoutError)
    expect(permanent).not.toBeInstanceOf(CardDeclined)
    const [first, second] = await catchTwice((ctx) =>
      ctx.run('bad', () => Promise.reject(new other.RetryAfterError('x', 5))),
    )
    expect(first).toMatchObject({ name: 'RetryAfterError', retryAfterMs: 5 })
    expect(second).toBeInstanceOf(RetryAfterError)
    expect(found(describeFailure(permanent, 'step').detail.permanent)).toBe(true)
  })
})
