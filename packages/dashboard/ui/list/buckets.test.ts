import { expect, it } from 'vitest'
import type { Tone } from '../run-status'
import { bucketsOf } from './buckets'

it('puts each run into one part of the time, from the first to the last', () => {
  const items = Array.from(
    { length: 500 },
    (_, index) => [index * 7919, index % 3 === 0 ? 'bad' : 'good'] as [number, Tone],
  )
  const buckets = bucketsOf(items)
  expect(buckets.length).toBe(48)
  expect(buckets.reduce((sum, { count }) => sum + count, 0)).toBe(500)
  expect(buckets.reduce((sum, { byTone }) => sum + (byTone.bad ?? 0), 0)).toBe(167)
  for (const [index, bucket] of buckets.entries()) expect(bucket.from).toBeCloseTo(buckets[index - 1]?.to ?? 0)
})

it('makes no more parts than there are seconds', () => {
  expect(
    bucketsOf([
      [1000, 'good'],
      [3500, 'bad'],
    ]).map(({ count }) => count),
  ).toEqual([1, 0, 1])
  expect(bucketsOf([])).toEqual([])
})
