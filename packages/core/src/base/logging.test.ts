import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { DurablyEvent } from '../index'
import { anything, type Bench, createBench, found } from '../testing/test-bench'

let bench: Bench

beforeEach(() => {
  bench = createBench()
})

afterEach(() => bench.close())

async function log(data: unknown, message = 'message') {
  const { run, events, durably } = await bench.perform((ctx) => {
    ctx.log.info(message, data)
    return 'done'
  })
  const lines = events.filter((event): event is DurablyEvent<'log:write'> => event.type === 'log:write')
  return { run, durably, line: lines[0] }
}

class Custom {
  readonly field = 1
}

const cycle: { self?: unknown; n: number } = { n: 1 }
cycle.self = cycle

const revoked = (() => {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
})()

describe('a log line', () => {
  it.each<[string, unknown, unknown]>([
    ['nothing', undefined, undefined],
    ['null', null, null],
    ['a number', 1.5, 1.5],
    ['NaN', Number.NaN, 'NaN'],
    ['a bigint', 12n, '12'],
    ['a symbol', Symbol('s'), 'Symbol(s)'],
    ['a Date', new Date(0), '1970-01-01T00:00:00.000Z'],
    ['an invalid Date', new Date(Number.NaN), 'Invalid Date'],
    ['an Error', new RangeError('far'), expect.objectContaining({ name: 'RangeError', message: 'far' })],
    ['a Map', new Map([['a', 1]]), { a: 1 }],
    ['a Set', new Set([1, 2n]), [1, '2']],
    ['an instance', new Custom(), { field: 1 }],
    ['undefined in a list', [1, undefined, 3], [1, null, 3]],
    ['NUL and half a character', 'a\0b\ud800', 'ab\ufffd'],
  ])('takes %s', async (_what, data, expected) => {
    const { run, line } = await log(data)
    expect(run).toMatchObject({ status: 'completed', output: 'done' })
    expect(line?.data).toEqual(expected)
  })

  it.each<[string, unknown]>([
    ['a cycle', cycle],
    [
      'a cycle of Maps',
      (() => {
        const map = new Map<string, unknown>()
        map.set('me', map)
        return map
      })(),
    ],
    [
      'a throwing getter',
      {
        get bad() {
          throw new Error('no')
        },
      },
    ],
    [
      'a getter that throws what has no text',
      {
        get bad() {
          throw Object.create(null)
        },
      },
    ],
    [
      'a getter that throws what throws',
      {
        get bad() {
          throw {
            toString() {
              throw new Error('no')
            },
          }
        },
      },
    ],
    [
      'a throwing toJSON',
      {
        toJSON() {
          throw new Error('no')
        },
      },
    ],
    ['a revoked proxy', revoked],
    ['a function', () => 1],
    ['holes', new Array(3)],
    ['an Error with odd fields', Object.assign(new Error('x'), { message: 5, stack: {} })],
    ['2 MiB of text', 'x'.repeat(2 ** 21)],
    ['100,000 numbers', Array.from({ length: 100_000 }, (_, n) => n)],
    ['a global', globalThis],
  ])('never fails the job: %s', async (_what, data) => {
    const { run, line } = await log(data)
    expect(run).toMatchObject({ status: 'completed', output: 'done' })
    expect(JSON.stringify(found(line).data).length).toBeLessThan(128 * 1024)
  })

  it.each<[string, unknown]>([
    ['undefined', undefined],
    ['a symbol', Symbol('s')],
    ['an object without text', Object.create(null)],
    [
      'an object that throws',
      {
        toString() {
          throw new Error('no')
        },
      },
    ],
  ])('never fails the job for its message: %s', async (_what, message) => {
    const { run, line } = await log(undefined, message as string)
    expect(run).toMatchObject({ status: 'completed', output: 'done' })
    expect(line?.message).toBeTypeOf('string')
  })

  it('has a message that every database takes, of bounded length', async () => {
    const { line } = await log(undefined, `a\0b\udc00${'x'.repeat(2 ** 20)}`)
    expect(found(line).message).toMatch(/^ab\ufffdx+/)
    expect(found(line).message.length).toBeLessThan(128 * 1024)
  })

  it('costs no more than its size: things that refer to each other are not followed for ever', async () => {
    let reads = 0
    const nodes = Array.from({ length: 10 }, () => ({}))
    for (const node of nodes) {
      nodes.forEach((other, n) => {
        const get = () => {
          reads += 1
          if (reads > 20_000) throw new Error('Too many reads.')
          return other
        }
        Object.defineProperty(node, `to${n}`, { get, enumerable: true })
      })
    }
    const { run } = await log(nodes)
    expect(run).toMatchObject({ status: 'completed' })
    expect(reads).toBeLessThan(20_000)
  })
})

describe('a stored log', () => {
  const recorded = { name: 'history', records: { logs: true } } as const

  it('is what was said', async () => {
    const durably = bench.open()
    durably.use(recorded)
    const job = durably.defineJob({ name: 'job', input: anything }, async (ctx) => {
      ctx.log.info('one', { n: 1 })
      await ctx.run('step', ({ log: stepLog }) => stepLog.warn('two'))
      ctx.log.error('three', 3n)
    })
    durably.start()
    const { id } = await job.triggerAndWait({})
    expect(await durably.getLogs(id)).toEqual([
      {
        id: expect.any(String),
        runId: id,
        stepName: null,
        level: 'info',
        message: 'one',
        data: { n: 1 },
        timestamp: expect.any(String),
      },
      expect.objectContaining({ stepName: 'step', level: 'warn', message: 'two', data: undefined }),
      expect.objectContaining({ stepName: null, level: 'error', message: 'three', data: '3' }),
    ])
  })

  it('is stored soon, also while a step takes long, and stays when the run fails', async () => {
    const durably = bench.open()
    durably.use(recorded)
    const job = durably.defineJob({ name: 'job', input: anything }, async (ctx) => {
      ctx.log.info('before')
      await new Promise<void>((resolve) => ctx.signal.addEventListener('abort', () => resolve()))
    })
    durably.start()
    const { id } = await job.trigger({})
    await bench.clock.advance(150)
    expect(await durably.getLogs(id)).toMatchObject([{ message: 'before' }])
    await durably.cancel(id)
    await bench.clock.advance(100)
    expect(await durably.getRun(id)).toMatchObject({ status: 'cancelled' })
    expect(await durably.getLogs(id)).toHaveLength(1)
  })

  it('is nothing without a plugin that wants it', async () => {
    const { durably, run } = await log({ n: 1 })
    expect(await durably.getLogs(run.id)).toEqual([])
  })

  it('comes in pages', async () => {
    const durably = bench.open()
    durably.use(recorded)
    const job = durably.defineJob({ name: 'job', input: anything }, (ctx) => {
      for (let n = 0; n < 5; n++) ctx.log.info(`${n}`)
    })
    durably.start()
    const { id } = await job.triggerAndWait({})
    const first = await durably.getLogs(id, { limit: 2 })
    const rest = await durably.getLogs(id, { after: found(first.at(-1)).id })
    expect([...first, ...rest].map(({ message }) => message)).toEqual(['0', '1', '2', '3', '4'])
    await expect(durably.getLogs(id, { limit: 0 })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })
})
