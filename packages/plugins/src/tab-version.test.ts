import { expect, it } from 'vitest'
import { compareVersions, type TabVersion } from './tab-version'

it.each<readonly [TabVersion | undefined, TabVersion | undefined]>([
  ['2.10.0', '2.9.1'],
  ['10', '9'],
  [10, '9.9'],
  [1.5, 1.25],
  ['2026-11-02T08:00:00Z', '2026-11-01T23:00:00Z'],
  ['1', undefined],
  [0, undefined],
])('%s is newer than %s', (newer, older) => {
  expect(compareVersions(newer, older)).toBeGreaterThan(0)
  expect(compareVersions(older, newer)).toBeLessThan(0)
  expect(compareVersions(newer, newer)).toBe(0)
})

it('tells no two tabs without a version apart', () => {
  expect(compareVersions(undefined, undefined)).toBe(0)
})
