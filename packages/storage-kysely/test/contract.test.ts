import { casesFor } from '@coji/durably-core/testing'
import { afterAll, describe, expect, it } from 'vitest'
import { inLane, scaled } from '../../../test/scale'
import { contractSetup } from './contract-setup'
import { DATABASES, startDatabases } from './databases'
import { recycling } from './recycle'

const { cases, excluded } = casesFor([
  'events',
  'logs',
  'signals',
  'transaction',
  'watch',
  'limits',
  'forks',
  'debounce',
  'archiving',
  'audit',
  'settings',
  'statistics',
  'cluster',
])

/** To start it costs as much as two hundred cases. */
const IN_LANE = inLane(DATABASES, ({ name }) => name !== 'pglite')

startDatabases(IN_LANE)

it('leaves no case of the contract out', () => {
  expect(excluded).toEqual([])
  expect(cases.length).toBeGreaterThan(300)
})

/** Those that speak the statements of another database through another driver: the quick lane spreads the cases. */
const REPEATING = IN_LANE.filter(({ name }) => name !== 'better-sqlite3' && name !== 'postgres')
const EVERY = scaled({ quick: 8 * Math.max(1, REPEATING.length), full: 1 })

for (const database of IN_LANE) {
  const turn = REPEATING.indexOf(database)
  const own = turn === -1 ? cases : cases.filter((_, index) => index % EVERY === turn % EVERY)
  describe(database.name, () => {
    const setup = recycling(contractSetup(database).open)
    afterAll(() => setup.end())
    for (const { name, run } of own) it(name, () => run(setup))
  })
}
