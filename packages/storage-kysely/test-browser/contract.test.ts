import { casesFor } from '@coji/durably-core/testing'
import { afterAll, describe, expect, inject, it } from 'vitest'
import { recycling } from '../test/recycle'
import { contractSetup } from './contract-setup'

const { cases, excluded } = casesFor([
  'events',
  'logs',
  'signals',
  'transaction',
  'watch',
  'limits',
  'forks',
  'debounce',
  'statistics',
  'archiving',
  'audit',
  'settings',
  'cluster',
])

it('leaves no case of the contract out', () => {
  expect(excluded).toEqual([])
  expect(cases.length).toBeGreaterThan(300)
  expect(crossOriginIsolated).toBe(true)
})

declare module 'vitest' {
  export interface ProvidedContext {
    readonly everyNthCase: number
  }
}

const own = cases.filter((_, index) => index % inject('everyNthCase') === 0)

// Each case has a file for itself, and most of its time is waiting for it.
describe.concurrent('sqlocal', () => {
  const setup = recycling(contractSetup().open)
  afterAll(() => setup.end())
  for (const { name, run } of own) it(name, () => run(setup))
})
