import { expect, it } from 'vitest'
import { isTooLarge } from '../scripts/size.mjs'

it.each([
  [1000, false],
  [1050, false],
  [1051, true],
])('takes %i bytes against a limit of 1000 as too large: %s', (bytes, expected) => {
  expect(isTooLarge(bytes, 1000)).toBe(expected)
})
