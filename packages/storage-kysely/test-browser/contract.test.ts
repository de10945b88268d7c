import { casesFor } from '@coji/durably-core/testing'
import { describe, expect, it } from 'vitest'
import { contractSetup } from './contract-setup'

const { cases, excluded } = casesFor(['events', 'logs', 'signals', 'transaction', 'watch'])

it('leaves no case of the contract out', () => {
  expect(excluded).toEqual([])
  expect(cases.length).toBeGreaterThan(300)
  expect(crossOriginIsolated).toBe(true)
})

// Each case has a file of its own, and most of its time is waiting for the disk.
describe.concurrent('sqlocal', () => {
  for (const { name, run } of cases) it(name, () => run(contractSetup()))
})
