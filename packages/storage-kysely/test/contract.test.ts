import { casesFor } from '@coji/durably-core/testing'
import { beforeAll, describe, expect, it } from 'vitest'
import { contractSetup } from './contract-setup'
import { DATABASES } from './databases'

const { cases, excluded } = casesFor(['events', 'logs', 'signals', 'transaction', 'watch'])

it('leaves no case of the contract out', () => {
  expect(excluded).toEqual([])
  expect(cases.length).toBeGreaterThan(300)
})

for (const database of DATABASES) {
  describe(database.name, () => {
    // Some take seconds to start.
    beforeAll(async () => (await database.open()).dispose(), 60_000)

    for (const { name, run } of cases) it(name, () => run(contractSetup(database)))
  })
}
