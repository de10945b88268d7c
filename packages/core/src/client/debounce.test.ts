import { afterEach, beforeEach, expect, it } from 'vitest'
import { createDurably, InvalidOptionError, type TriggerOptions } from '../index'
import { createMemoryStorage } from '../memory'
import { anything, type Bench, createBench, recordEvents } from '../testing/test-bench'

let bench: Bench

beforeEach(() => {
  bench = createBench()
})

afterEach(() => bench.close())

function indexer() {
  const durably = bench.open()
  const ran: unknown[] = []
  const job = durably.defineJob({ name: 'index', input: anything }, (_ctx, payload) => void ran.push(payload))
  return { durably, job, ran }
}

it('makes one run of many triggers, with the payload of the last, so long after it', async () => {
  const { durably, job, ran } = indexer()
  const events = recordEvents(durably)
  durably.start()
  const first = await job.trigger('a', { debounce: 5000 })
  await bench.clock.advance(4000)
  const second = await job.trigger('b', { debounce: { wait: 5000 } })
  await bench.clock.advance(4000)
  expect([ran, first.deduplicated, second.deduplicated, second.id]).toEqual([[], false, true, first.id])
  await bench.clock.advance(1000)
  expect(ran).toEqual(['b'])
  expect(events.filter(({ type }) => type === 'run:trigger' || type === 'run:deduplicated')).toHaveLength(1)

  const third = await job.trigger('c', { debounce: 5000 })
  expect(third.id).not.toBe(first.id)
  await bench.clock.advance(5000)
  expect(ran).toEqual(['b', 'c'])
})

it('does not wait for ever when triggers keep coming', async () => {
  const { durably, job, ran } = indexer()
  durably.start()
  for (let n = 1; n <= 5; n++) {
    await job.trigger(n, { debounce: { wait: 5000, maxWait: 12_000 } })
    await bench.clock.advance(3000)
  }
  expect(ran).toEqual([4])
})

/** The first write waits until it is let go. */
function heldUp() {
  let letGo = () => {}
  const gate = new Promise<void>((resolve) => {
    letGo = resolve
  })
  const { debounce } = bench.storage
  let isFirst = true
  const hold = async () => {
    const waits = isFirst
    isFirst = false
    if (waits) await gate
  }
  const storage = {
    ...bench.storage,
    debounce: {
      ...debounce,
      enqueue: (...args: Parameters<typeof debounce.enqueue>) => hold().then(() => debounce.enqueue(...args)),
      join: (...args: Parameters<typeof debounce.join>) => hold().then(() => debounce.join(...args)),
    },
  }
  const job = bench.open({ storage }).defineJob({ name: 'index', input: anything }, () => null)
  return { job, letGo }
}

it.each([
  [{ debounce: 5000 }, ['b']],
  [{ batch: { max: 9, within: 5000 } }, ['a', 'b']],
] as const)('keeps triggers of one process in their order: %j', async (options, expected) => {
  const { job, letGo } = heldUp()
  const triggers = [job.trigger(['a'], options), job.trigger(['b'], options)]
  await bench.clock.advance(100)
  letGo()
  const [one, other] = await Promise.all(triggers)
  expect(other?.id).toBe(one?.id)
  expect((await job.getRuns()).map(({ payload }) => payload)).toEqual([expected])
})

it('lets one go on when the one before is held up', async () => {
  const { job, letGo } = heldUp()
  const first = job.trigger('a', { debounce: 60_000 })
  const second = job.trigger('b', { debounce: 60_000 })
  const other = await job.trigger('c', { debounce: { wait: 60_000, key: 'of its own' } })
  expect(other.deduplicated).toBe(false)
  await bench.clock.advance(5000)
  expect((await second).payload).toBe('b')
  letGo()
  await first
})

it('keeps their order however long all of them take together', async () => {
  const { debounce } = bench.storage
  let [underWay, most] = [0, 0]
  const slowly = async <T>(write: () => Promise<T>) => {
    most = Math.max(most, ++underWay)
    await new Promise<void>((resolve) => void bench.clock.schedule(1000, resolve))
    underWay -= 1
    return write()
  }
  const slow: typeof debounce = { ...debounce, enqueue: (...args) => slowly(() => debounce.enqueue(...args)) }
  const durably = bench.open({ storage: { ...bench.storage, debounce: slow } })
  const job = durably.defineJob({ name: 'index', input: anything }, () => null)
  const triggers = Array.from({ length: 12 }, (_, n) => job.trigger(n, { debounce: 60_000 }))
  await bench.clock.advance(15_000)
  expect((await Promise.all(triggers)).map(({ payload }) => payload)).toEqual(triggers.map((_, n) => n))
  expect(most).toBe(1)
})

it('keeps keys apart', async () => {
  const { durably, job, ran } = indexer()
  durably.start()
  for (const payload of ['a1', 'b1', 'a2']) await job.trigger(payload, { debounce: { wait: 5000, key: payload[0] } })
  await bench.clock.advance(5000)
  expect(ran.sort()).toEqual(['a2', 'b1'])
})

it.each<readonly [string, unknown]>([
  ['0', { debounce: 0 }],
  ['NaN', { debounce: { wait: Number.NaN } }],
  ['milliseconds, or an object', { debounce: null }],
  ['maxWait', { debounce: { wait: 1, maxWait: -1 } }],
  ['100 years', { debounce: 1e15 }],
  ['key', { debounce: { wait: 1, key: 1 } }],
  ['waitFor', { debounce: { wait: 1, waitFor: 2 } }],
  ['delay', { debounce: 1, delay: 1 }],
  ['idempotencyKey', { debounce: 1, idempotencyKey: 'k' }],
])('refuses what makes no sense: %s', async (word, options) => {
  const { durably, job } = indexer()
  const refused = job.trigger(1, options as TriggerOptions)
  await expect(refused).rejects.toThrow(InvalidOptionError)
  await expect(refused).rejects.toThrow(word)
  expect(await durably.getRuns()).toEqual([])
})

it('is not for batches', async () => {
  const { durably, job } = indexer()
  const items = [{ payload: 1, options: { debounce: 1 } }, { payload: 2 }]
  await expect(job.batchTrigger(items)).rejects.toThrow('debounce is for trigger()')
  expect(await durably.getRuns()).toEqual([])
})

it('says when the storage does not have it', async () => {
  const { debounce: _, ...storage } = createMemoryStorage()
  const durably = createDurably({ storage, logger: null })
  const job = durably.defineJob({ name: 'index', input: anything }, () => {})
  await expect(job.trigger(1, { debounce: 1 })).rejects.toMatchObject({ code: 'CAPABILITY_MISSING' })
})
