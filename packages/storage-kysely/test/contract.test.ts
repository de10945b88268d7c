import { casesFor } from '@coji/durably-core/testing'
import { describe, expect, it } from 'vitest'
import { contractSetup } from './contract-setup'
import { DATABASES, startDatabases } from './databases'

const { cases, excluded } = casesFor(['events', 'logs', 'signals', 'transaction', 'watch'])

startDatabases()

it('leaves no case of the contract out', () => {
  expect(excluded).toEqual([])
  expect(cases.length).toBeGreaterThan(300)
})

for (const database of DATABASES) {
  describe(database.name, () => {
    for (const { name, run } of cases) it(name, () => run(contractSetup(database)))
  })
}
