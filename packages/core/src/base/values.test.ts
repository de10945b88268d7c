import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { anything, type Bench, createBench, createMortal, found, type JobBody } from '../testing/test-bench'
import { settled } from '../testing/fake-clock'

let bench: Bench

beforeEach(() => {
  bench = createBench()
})

afterEach(() => bench.close())

const MIB = 2 ** 20

/** The name that makes a promise of an object. */
const THEN = 'then'

function nested(levels: number): unknown {
  let value: unknown = []
  for (let level = 1; level < levels; level++) value = level % 2 === 0 ? [value] : { in: value }
  return value
}

function cyclic(): object {
  const value: { list: unknown[] } = { list: [] }
  value.list.push(value)
  return value
}

class Money {
  readonly amount = 1
}

class Rows extends Array<number> {}

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

/** What goes in and what comes out, which is the same unless given. */
const KEPT_ROWS: readonly (readonly [string, () => unknown, unknown?])[] = [
  [
    'what a getter says first: it is asked once',
    () => {
      let n = 0
      return {
        get a() {
          n += 1
          return n === 1 ? 1 : new Date(0)
        },
      }
    },
    { a: 1 },
  ],
  ['null', () => null],
  ['false', () => false],
  ['zero', () => 0],
  ['minus zero, as zero', () => -0, 0],
  ['the largest integer', () => Number.MAX_SAFE_INTEGER],
  ['the largest and smallest numbers', () => [Number.MAX_VALUE, Number.MIN_VALUE, -1e-7]],
  ['no text', () => ''],
  ['text with NUL', () => 'a\0b'],
  ['half a character', () => '\ud800 \udc00'],
  ['line separators and quotes', () => '\u2028\u2029"\\\n'],
  ['an emoji', () => '👩‍👩‍👧'],
  ['no list and no object', () => [[], {}]],
  ['properties that are undefined', () => ({ a: undefined, b: [{ c: undefined, d: 1 }] }), { b: [{ d: 1 }] }],
  ['an own __proto__', () => JSON.parse('{"__proto__":{"polluted":true},"constructor":1,"toString":null}')],
  ['keys like numbers', () => ({ 1: 'a', '01': 'b', '': 'c' })],
  ['an object without prototype', () => Object.assign(Object.create(null), { a: 1 }), { a: 1 }],
  ['a then that is no function', () => ({ [THEN]: 'later' })],
  [
    'a getter',
    () => ({
      get a() {
        return 1
      },
    }),
    { a: 1 },
  ],
  [
    'one object at two places',
    () => {
      const shared = { n: 1 }
      return [shared, shared]
    },
  ],
  ['64 levels', () => nested(64)],
  ['1 MiB', () => 'x'.repeat(MIB - 2)],
  ['1 MiB of two bytes each', () => 'é'.repeat(MIB / 2 - 1)],
]

const REFUSED_ROWS: readonly (readonly [string, () => unknown, string, string?])[] = [
  ['a bigint', () => ({ a: [1n] }), 'SERIALIZATION', 'a[0]'],
  ['NaN', () => ({ a: { b: Number.NaN } }), 'SERIALIZATION', 'a.b'],
  ['Infinity', () => [1, Number.POSITIVE_INFINITY], 'SERIALIZATION', '[1]'],
  ['a symbol', () => ({ a: Symbol('s') }), 'SERIALIZATION', 'a'],
  ['a function', () => ({ a: () => 1 }), 'SERIALIZATION', 'a'],
  ['a Date', () => ({ at: new Date() }), 'SERIALIZATION', 'at'],
  ['a Map', () => ({ a: new Map() }), 'SERIALIZATION', 'a'],
  ['a Set', () => [new Set()], 'SERIALIZATION', '[0]'],
  ['a RegExp', () => ({ a: /x/ }), 'SERIALIZATION', 'a'],
  ['bytes', () => ({ a: new Uint8Array(2) }), 'SERIALIZATION', 'a'],
  ['a boxed number', () => ({ a: Object(1) as unknown }), 'SERIALIZATION', 'a'],
  ['an Error', () => ({ a: new Error('x') }), 'SERIALIZATION', 'a'],
  ['a URL', () => ({ a: new URL('https://example.org') }), 'SERIALIZATION', 'a'],
  ['an instance of a class', () => ({ a: new Money() }), 'SERIALIZATION', 'a'],
  ['a list of a class', () => ({ a: Rows.of(1, 2) }), 'SERIALIZATION', 'a'],
  ['a list with properties', () => ({ a: 'ab'.match(/a(?<g>b)/) }), 'SERIALIZATION', 'a'],
  ['a promise', () => ({ a: Promise.resolve(1) }), 'SERIALIZATION', 'a'],
  ['a hole', () => ({ a: Object.assign(new Array(3), { 0: 1, 2: 3 }) }), 'SERIALIZATION', 'a[1]'],
  ['undefined in a list', () => ({ a: [undefined] }), 'SERIALIZATION', 'a[0]'],
  ['a symbol as key', () => ({ a: { [Symbol('s')]: 1 } }), 'SERIALIZATION', 'a'],
  ['a cycle', cyclic, 'SERIALIZATION'],
  ['65 levels', () => nested(65), 'SERIALIZATION'],
  ['a million levels', () => nested(100_000), 'SERIALIZATION'],
  ['a toJSON', () => ({ a: { toJSON: () => 1 } }), 'SERIALIZATION'],
  [
    'a throwing toJSON',
    () => ({
      toJSON() {
        throw new Error('no')
      },
    }),
    'SERIALIZATION',
  ],
  [
    'a throwing getter',
    () => ({
      a: {
        get bad() {
          throw new Error('no')
        },
      },
    }),
    'SERIALIZATION',
  ],
  [
    'a getter that throws what has no text',
    () => ({
      get bad() {
        throw Object.create(null)
      },
    }),
    'SERIALIZATION',
  ],
  ['a revoked proxy', () => [revoked()], 'SERIALIZATION'],
  ['a then within', () => ({ a: { [THEN]: () => {} } }), 'SERIALIZATION', 'a.then'],
  ['1 MiB and a byte', () => 'x'.repeat(MIB - 1), 'PAYLOAD_TOO_LARGE'],
  ['much text of three bytes each', () => '€'.repeat(MIB / 3 + 1), 'PAYLOAD_TOO_LARGE'],
]

const KEPT = KEPT_ROWS.map(([what, make, expected = make()]) => ({ what, make, expected }))
const REFUSED = REFUSED_ROWS.map(([what, make, code, path]) => ({ what, make, code, path }))

describe('a value that JSON can carry', () => {
  it.each(KEPT)('is the same as payload and output: $what', async ({ make, expected }) => {
    const durably = bench.open()
    const seen: unknown[] = []
    const job = durably.defineJob({ name: 'job', input: anything }, (_ctx, payload) => {
      seen.push(payload)
      return make()
    })
    durably.start()
    const run = await job.trigger(make())
    expect(run.payload).toEqual(expected)
    await settled()
    expect(seen).toEqual([expected])
    expect(await durably.getRun(run.id)).toMatchObject({ status: 'completed' })
    expect(found(await durably.getRun(run.id)).output).toEqual(expected)
  })

  it.each(KEPT)(
    'is the same from a step and a checkpoint, at once and after a crash: $what',
    async ({ make, expected }) => {
      const seen: unknown[] = []
      const execute: JobBody = async (ctx) => {
        seen.push(await ctx.run('value', make))
        await ctx.run('rest', async ({ checkpoint, save }) => {
          if (checkpoint === undefined) {
            await save(make())
            await new Promise(() => {})
          }
          seen.push(checkpoint)
        })
      }
      const mortal = createMortal(bench.storage)
      const { now } = await bench.perform(execute, { storage: mortal.storage, workerId: 'dead' })
      mortal.kill()
      const { recover } = bench.open()
      await recover({ workerId: 'dead' })
      const durably = bench.open()
      durably.defineJob({ name: 'job', input: anything }, execute)
      durably.start()
      await settled()
      expect(await now()).toMatchObject({ status: 'completed' })
      expect(seen).toEqual([expected, expected, expected])
      expect(Object.is(seen[0], seen[1]) && typeof seen[0] === 'object' && seen[0] !== null).toBe(false)
      expect(({} as { polluted?: boolean }).polluted).toBeUndefined()
    },
  )

  it('may be undefined as a whole', async () => {
    const seen: unknown[] = []
    const durably = bench.open()
    const job = durably.defineJob({ name: 'job', input: anything }, (_ctx, payload) => void seen.push(payload))
    durably.start()
    const { id } = await job.trigger(undefined)
    await settled()
    expect(seen).toEqual([undefined])
    const run = found(await durably.getRun(id))
    expect([run.status, run.payload, run.output]).toEqual(['completed', undefined, undefined])
  })
})

describe('a value that JSON would change', () => {
  it.each(REFUSED)('is refused as payload: $what', async ({ make, code, path }) => {
    const durably = bench.open()
    const job = durably.defineJob({ name: 'picky', input: anything }, () => {})
    const error = await job.trigger(make()).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code, message: expect.stringContaining('The payload of job "picky"') })
    if (path !== undefined) expect(error).toMatchObject({ path })
    expect(await durably.getRuns()).toEqual([])
  })

  it.each(REFUSED)('fails the run as output of a step: $what', async ({ make, code, path }) => {
    const { run, durably, job } = await bench.perform((ctx) => ctx.run('picky', make))
    expect(run).toMatchObject({ status: 'failed', errorDetail: { code, stepName: 'picky' } })
    expect(run.error).toContain('The output of step "picky"')
    if (path !== undefined) expect(run.error).toContain(` at ${path}:`)
    expect(await durably.getSteps(run.id)).toMatchObject([{ status: 'failed', output: undefined }])
    await expect(job.trigger({})).resolves.toMatchObject({ status: 'pending' })
  })

  it.each(REFUSED)('fails the run as its output: $what', async ({ make, code }) => {
    const { run } = await bench.perform(make)
    expect(run).toMatchObject({ status: 'failed', output: null, errorDetail: { code } })
    expect(run.error).toContain('The output of job "job"')
  })

  it.each(REFUSED)('is refused as checkpoint: $what', async ({ make, code }) => {
    const { run } = await bench.perform((ctx) => ctx.run('walk', ({ save }) => save(make())))
    expect(run).toMatchObject({ status: 'failed', errorDetail: { code } })
    expect(run.error).toContain('The checkpoint of step "walk"')
  })

  it('is refused when it is a function that looks like a promise', async () => {
    const durably = bench.open()
    const job = durably.defineJob({ name: 'job', input: anything }, () => {})
    const outcome = await Promise.race([
      job.trigger({ [THEN]() {} }).catch((thrown: unknown) => thrown),
      bench.clock.advance(1000).then(() => 'waits for ever'),
    ])
    expect(outcome).toMatchObject({ code: 'SERIALIZATION', path: 'then' })
  })

  it('leaves the worker able to go on', async () => {
    const { durably, job } = await bench.perform(() => ({ a: 1n }))
    const other = durably.defineJob({ name: 'other', input: anything }, () => 'fine')
    await job.trigger({})
    await other.trigger({})
    await settled()
    expect(await other.getRuns()).toMatchObject([{ status: 'completed' }])
  })
})
