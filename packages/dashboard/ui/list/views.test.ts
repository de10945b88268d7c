import { expect, it } from 'vitest'
import { countText } from './views'

it('a count says more than that where the server counted no further', () => {
  expect(countText(999, 1000)).toBe('999')
  expect(countText(1000, 1000)).toBe('1,000+')
  expect(countText(1200, 1000)).toBe('1,000+')
  expect(countText(1000, 10_000)).toBe('1,000')
})
