import { expect, it } from 'vitest'
import { isOutdated, isTooLarge } from '../scripts/size.mjs'

it.each([
  [1000, false],
  [1050, false],
  [1051, true],
])('takes %i bytes against a limit of 1000 as too large: %s', (bytes, expected) => {
  expect(isTooLarge(bytes, 1000)).toBe(expected)
})

it.each([
  ['| 100 kB | 40 kB |', false],
  ['| 106 kB | 40 kB |', false],
  ['| 107 kB | 40 kB |', true],
  ['| 100 kB | 36 kB |', true],
  ['| 100 kB |', true],
])('takes %s on a page for outdated where 100 kB and 40 kB are right: %s', (written, expected) => {
  expect(isOutdated(written, '| 100 kB | 40 kB |')).toBe(expected)
})
