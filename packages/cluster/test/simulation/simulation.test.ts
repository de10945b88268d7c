import { describe, expect, it } from 'vitest'
import { LONG_PATIENCE_MS } from '../../../../test/pace'
import { reportSuite } from '../../../../test/report'
import { scaled } from '../../../../test/scale'
import { simulate } from './simulate'
import type { Mutant } from './witness'

const SEEDS = scaled({ quick: 60, full: 2000 })

describe('three processes, each call of which may fail, get lost or take its time', {
  timeout: LONG_PATIENCE_MS,
}, () => {
  it('deal with each instant and each message once', async () => {
    for (let seed = 1; seed <= SEEDS; seed++) expect({ seed, wrong: await simulate(seed) }).toEqual({ seed, wrong: [] })
    reportSuite({ suite: 'schedules and messages under faults', seeds: SEEDS })
  })

  it.each<Mutant>(['fire', 'deliver', 'release'])('are found out without the guard of %s', async (mutant) => {
    let found = 0
    for (let seed = 1; seed <= SEEDS && found === 0; seed++) found = (await simulate(seed, mutant)).length
    expect(found).toBeGreaterThan(0)
  })
})
