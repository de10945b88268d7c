import { expect, it } from 'vitest'
import { isOutdated, isTooLarge, updatedLimits } from '../scripts/size.mjs'

it.each([
  [1000, false],
  [1004, false],
  [1006, true],
])('takes %i bytes against a limit of 1000 as too large: %s', (bytes, expected) => {
  expect(isTooLarge(bytes, 1000)).toBe(expected)
})

const LEAST = 'createDurably, defineJob of packages/core/dist/index.js'

it.each([
  ['accepts what is smaller', { [LEAST]: 90, rest: 40 }, { [LEAST]: 90, rest: 40 }],
  ['accepts growth of the rest', { [LEAST]: 100, rest: 60 }, { [LEAST]: 100, rest: 60 }],
  ['accepts no growth of what every application needs', { [LEAST]: 101, rest: 50 }, { [LEAST]: 100, rest: 50 }],
])('an update %s', (_what, sizes, expected) => {
  expect(updatedLimits({ [LEAST]: 100, rest: 50 }, sizes)).toEqual(expected)
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
