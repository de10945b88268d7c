import { afterEach, beforeEach, expect, it } from 'vitest'
import { createDurably, InvalidOptionError, type TriggerOptions } from '../index'
import { createMemoryStorage } from '../memory'
import { anything, type Bench, createBench, recordEvents } from '../testing/test-bench'

let bench: Bench

beforeEach(() => {
  bench = createBench()
})

afterEach(() => bench.close())

function shipper() {
  const durably = bench.open()
  const ran: unknown[] = []
  const job = durably.defineJob({ name: 'ship', input: anything }, (_ctx, payload) => void ran.push(payload))
  return { durably, job, ran }
}

it('makes one run of many triggers, with the entries of all, so long after the first', async () => {
  const { durably, job, ran } = shipper()
  const events = recordEvents(durably)
  durably.start()
  const batch = { max: 10, within: 5000 }
  const first = await job.trigger(['a'], { batch })
  await bench.clock.advance(4000)
  const second = await job.trigger(['b', 'c'], { batch })
  expect([ran, first.deduplicated, second.deduplicated, second.id]).toEqual([[], false, true, first.id])
  await bench.clock.advance(1000)
  expect(ran).toEqual([['a', 'b', 'c']])
  expect(events.filter(({ type }) => type === 'run:trigger' || type === 'run:deduplicated')).toHaveLength(1)
})

it('starts at once what is full', async () => {
  const { durably, job, ran } = shipper()
  durably.start()
  for (const n of [1, 2, 3]) await job.trigger([n], { batch: { max: 2, within: 5000 } })
  await job.trigger(['full by itself'], { batch: { max: 1, within: 5000, key: 'other' } })
  await bench.clock.advance(0)
  expect(ran).toEqual([[1, 2], ['full by itself']])
})

it('keeps keys apart, and what is debounced', async () => {
  const { durably, job, ran } = shipper()
  durably.start()
  await job.trigger(['a1'], { batch: { max: 9, within: 5000, key: 'a' } })
  await job.trigger(['b1'], { batch: { max: 9, within: 5000, key: 'b' } })
  await job.trigger(['last'], { debounce: { wait: 5000, key: 'a' } })
  await job.trigger(['a2'], { batch: { max: 9, within: 5000, key: 'a' } })
  await bench.clock.advance(5000)
  expect(ran).toEqual([['a1', 'a2'], ['b1'], ['last']])
})

it.each<readonly [string, unknown, unknown]>([
  ['{ max: 100, within: 5000 }', [1], { batch: null }],
  ['batch.max', [1], { batch: { max: 0, within: 1 } }],
  ['1001', [1], { batch: { max: 1001, within: 1 } }],
  ['batch.within', [1], { batch: { max: 1, within: Number.NaN } }],
  ['batch.key', [1], { batch: { max: 1, within: 1, key: 1 } }],
  ['wait', [1], { batch: { max: 1, within: 1, wait: 2 } }],
  ['debounce', [1], { batch: { max: 1, within: 1 }, debounce: 1 }],
  ['runAt', [1], { batch: { max: 1, within: 1 }, runAt: new Date(0) }],
  ['idempotencyKey', [1], { batch: { max: 1, within: 1 }, idempotencyKey: 'k' }],
  ['a list of 1 to 2', { length: 1 }, { batch: { max: 2, within: 1 } }],
  ['a list of 1 to 2', [], { batch: { max: 2, within: 1 } }],
  ['a list of 1 to 2', [1, 2, 3], { batch: { max: 2, within: 1 } }],
])('refuses what makes no sense: %s', async (word, payload, options) => {
  const { durably, job } = shipper()
  const refused = job.trigger(payload, options as TriggerOptions)
  await expect(refused).rejects.toThrow(InvalidOptionError)
  await expect(refused).rejects.toThrow(word)
  expect(await durably.getRuns()).toEqual([])
})

it('is not for several at once', async () => {
  const { durably, job } = shipper()
  const items = [{ payload: [1], options: { batch: { max: 1, within: 1 } } }, { payload: [2] }]
  await expect(job.batchTrigger(items)).rejects.toThrow('batch is for trigger()')
  expect(await durably.getRuns()).toEqual([])
})

it('says when the storage does not have it', async () => {
  const { debounce: _, ...storage } = createMemoryStorage()
  const job = createDurably({ storage, logger: null }).defineJob({ name: 'ship', input: anything }, () => {})
  const refused = job.trigger([1], { batch: { max: 1, within: 1 } })
  await expect(refused).rejects.toMatchObject({ code: 'CAPABILITY_MISSING' })
})
