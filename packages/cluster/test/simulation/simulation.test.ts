import { describe, expect, it } from 'vitest'
import { LONG_PATIENCE_MS } from '../../../../test/pace'
import { reportSuite } from '../../../../test/report'
import { scaled } from '../../../../test/scale'
import { MUTANTS, type Mutant } from './mutants'
import { simulate } from './simulate'

/** Each is found by one of the first few. */
const MOST_SEEDS = 60
const SEEDS = scaled({ quick: 30, full: 2000 })

describe('three processes, each call of which may fail, get lost or take its time', {
  timeout: LONG_PATIENCE_MS,
}, () => {
  it('deal with each instant, message and trigger once', async () => {
    for (let seed = 1; seed <= SEEDS; seed++) expect({ seed, wrong: await simulate(seed) }).toEqual({ seed, wrong: [] })
    reportSuite({ suite: 'schedules, messages and triggers under faults', seeds: SEEDS })
  })

  it.each(Object.entries(MUTANTS))('are found out where nobody asks whether %s', async (_rule, mutant: Mutant) => {
    let found: readonly string[] = []
    let seed = 0
    while (seed < MOST_SEEDS && found.length === 0) found = await simulate(++seed, mutant)
    expect(found).not.toEqual([])
  })
})
