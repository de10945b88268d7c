import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { DurablyError, PermanentError } from '../index'
import { anything, type Bench, createBench, found } from '../testing/test-bench'
import { settled } from '../testing/fake-clock'

let bench: Bench

beforeEach(() => {
  bench = createBench()
})

afterEach(() => bench.close())

function withCauseCycle(): Error {
  const error = new Error('round')
  error.cause = error
  return error
}

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

/** What is thrown, and what the error of the run says. */
const THROWN_ROWS: readonly (readonly [string, () => unknown, (string | RegExp)?])[] = [
  ['an Error', () => new Error('plain'), 'plain'],
  ['an Error without a message', () => new Error(''), ''],
  ['text', () => 'just text', 'just text'],
  ['null', () => null, 'null'],
  ['undefined', () => undefined, 'undefined'],
  ['a number', () => 42, '42'],
  ['a bigint', () => 42n, '42'],
  ['a symbol', () => Symbol('why'), /why/],
  ['false', () => false, 'false'],
  ['a function', () => () => 1],
  ['an object', () => ({ reason: 'because' }), /because/],
  ['an object with a message', () => ({ message: 'like an error', code: 'E_LIKE' }), 'like an error'],
  ['an empty object', () => ({})],
  ['an object without prototype', () => Object.create(null) as unknown],
  [
    'a cycle',
    () => {
      const a: { me?: unknown } = {}
      a.me = a
      return a
    },
  ],
  ['what turns into nothing', () => ({ toJSON: () => undefined })],
  [
    'what turns into an error',
    () => ({
      toJSON() {
        throw new Error('no')
      },
    }),
  ],
  ['a revoked proxy', revoked],
  ['a frozen Error', () => Object.freeze(new Error('cold')), 'cold'],
  ['an Error with NUL and half a character', () => new Error('a\0b\ud800c'), 'ab\ufffdc'],
  ['an Error with 5 MiB of message', () => new Error('x'.repeat(5 * 2 ** 20)), /^x{1000,8192}$/],
  ['an Error with a huge stack', () => Object.assign(new Error('deep'), { stack: 'x'.repeat(2 ** 21) }), 'deep'],
  [
    'an Error whose message throws',
    () =>
      Object.defineProperty(new Error('x'), 'message', {
        get() {
          throw new Error('no')
        },
      }),
  ],
  ['an Error whose message is no text', () => Object.assign(new Error('x'), { message: { a: 1 }, name: 5, code: {} })],
  ['an Error that causes itself', withCauseCycle, 'round'],
  ['several errors', () => new AggregateError([new Error('a'), new Error('b')], 'many'), 'many'],
  ['an abort', () => new DOMException('stop that', 'AbortError'), 'stop that'],
  ['a PermanentError', () => new PermanentError('never'), 'never'],
]

const THROWN = THROWN_ROWS.map(([what, make, expected]) => ({ what, make, expected }))

function check(error: string | null, expected: string | RegExp | undefined): void {
  expect(error).toBeTypeOf('string')
  expect(found(error).length).toBeLessThanOrEqual(8192)
  expect(found(error)).not.toContain('\0')
  if (typeof expected === 'string') expect(error).toBe(expected)
  else if (expected !== undefined) expect(error).toMatch(expected)
}

describe('whatever is thrown', () => {
  it.each(THROWN)('by a job is recorded and fails the run: $what', async ({ make, expected }) => {
    const { run, events } = await bench.perform(async () => {
      throw make()
    })
    expect(run).toMatchObject({ status: 'failed', errorDetail: { name: expect.any(String) } })
    check(run.error, expected)
    expect(JSON.stringify(run.errorDetail).length).toBeLessThan(40_000)
    expect(events.at(-1)).toMatchObject({ type: 'run:fail', error: run.error, failedStepName: null })
  })

  it.each(THROWN)('by a step is recorded and fails the run: $what', async ({ make, expected }) => {
    const { run, durably, events } = await bench.perform((ctx) =>
      ctx.run('bad', async () => {
        throw make()
      }),
    )
    expect(run).toMatchObject({ status: 'failed', errorDetail: { stepName: 'bad' } })
    check(run.error, expected)
    expect(await durably.getSteps(run.id)).toMatchObject([{ name: 'bad', status: 'failed', error: run.error }])
    expect(events.map(({ type }) => type).filter((type) => type.endsWith(':fail'))).toEqual(['step:fail', 'run:fail'])
    expect(events.at(-1)).toMatchObject({ failedStepName: 'bad' })
  })

  it.each(THROWN)('by a step can be caught, as what is recorded of it: $what', async ({ make }) => {
    const { run, durably } = await bench.perform(async (ctx) => {
      try {
        await ctx.run('bad', () => {
          throw make()
        })
        return 'went through'
      } catch (error) {
        return error instanceof DurablyError && error.message
      }
    })
    const [step] = await durably.getSteps(run.id)
    expect(run).toMatchObject({ status: 'completed', output: found(step).error })
  })
})

describe('an error', () => {
  it('keeps name, code and stack', async () => {
    class PaymentError extends Error {
      override readonly name = 'PaymentError'
      readonly code = 'CARD_DECLINED'
    }
    const { run } = await bench.perform(() => Promise.reject(new PaymentError('declined')))
    expect(run.errorDetail).toEqual({
      name: 'PaymentError',
      code: 'CARD_DECLINED',
      stack: expect.stringContaining('thrown.test.ts'),
    })
  })

  it('of the job before it awaits anything is as good as any other', async () => {
    const { run } = await bench.perform(() => {
      throw new Error('at once')
    })
    expect(run).toMatchObject({ status: 'failed', error: 'at once' })
  })
})

describe('an output that its schema refuses', () => {
  it('fails the run and says where', async () => {
    const durably = bench.open()
    const output = z.object({ list: z.array(z.number()) })
    const job = durably.defineJob({ name: 'job', input: anything, output }, async (ctx) => {
      await ctx.run('kept', () => 1)
      return { list: ['x' as unknown as number] }
    })
    durably.start()
    const { id } = await job.trigger({})
    await settled()
    const run = found(await job.getRun(id))
    expect(run).toMatchObject({
      status: 'failed',
      output: null,
      errorDetail: { code: 'VALIDATION', name: 'ValidationError', issues: [{ path: 'list.0' }] },
    })
    expect(run.error).toContain('list.0')
    expect(await durably.getSteps(id)).toMatchObject([{ name: 'kept', status: 'completed' }])
  })

  it('stores what the schema made of it', async () => {
    const durably = bench.open()
    const output = z.object({ n: z.number().transform((n) => n * 2), extra: z.string().default('added') })
    const job = durably.defineJob({ name: 'job', input: anything, output }, () => ({ n: 2, dropped: true }))
    durably.start()
    const { output: stored } = await job.triggerAndWait({})
    expect(stored).toEqual({ n: 4, extra: 'added' })
  })

  it('fails the run when the schema itself throws', async () => {
    const durably = bench.open()
    const output = z.any().transform(() => {
      throw new Error('schema broke')
    })
    const job = durably.defineJob({ name: 'job', input: anything, output }, () => 1)
    durably.start()
    const { id } = await job.trigger({})
    await settled()
    expect(await job.getRun(id)).toMatchObject({ status: 'failed', error: 'schema broke' })
  })
})
