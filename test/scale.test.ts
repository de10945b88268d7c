import { expect, it } from 'vitest'
import { SCALE, scaled } from './scale'

it('gives the count of the lane that is running', () => {
  const counts = { quick: 2, full: 20 }
  expect(scaled(counts)).toBe(counts[SCALE])
  expect(['quick', 'full']).toContain(SCALE)
})
