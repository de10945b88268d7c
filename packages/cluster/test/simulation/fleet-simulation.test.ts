import { createStorageWithout, type GuardPlace } from '@coji/durably-core/simulation'
import type { TransitionName } from '@coji/durably-core/storage'
import { describe, expect, it } from 'vitest'
import { LONG_PATIENCE_MS } from '../../../../test/pace'
import { reportSuite } from '../../../../test/report'
import { scaled } from '../../../../test/scale'
import { simulateFleet } from './simulate-fleet'

const SEED_THAT_FINDS = 7
const SEEDS = scaled({ quick: 4, full: 400 })

describe('five processes with leaders, each call of which may fail, get lost or take its time', {
  timeout: LONG_PATIENCE_MS,
}, () => {
  it('keep to the lifecycle, assign under one leader at a time, and end all work when the faults end', async () => {
    const seen = new Map<TransitionName, number>()
    let leaders = 0
    for (let seed = 1; seed <= SEEDS; seed++) {
      const report = await simulateFleet(seed)
      expect({ seed, wrong: report.wrong }).toEqual({ seed, wrong: [] })
      for (const [transition, count] of report.seen) seen.set(transition, (seen.get(transition) ?? 0) + count)
      leaders += report.leaders
    }
    for (const transition of ['assign', 'start', 'decline', 'orphan', 'recover', 'claim'] as const) {
      expect([transition, (seen.get(transition) ?? 0) > 0]).toEqual([transition, true])
    }
    reportSuite({ suite: 'a cluster under faults', seeds: SEEDS, leaders, assignments: seen.get('assign') ?? 0 })
  })

  // Each guard by itself is for the contract: most of them have another one behind them that no fault gets past.
  it('are found out where an old leader may assign', async () => {
    const place: GuardPlace = { transition: 'assign', guard: 'leader' }
    const createStorage = (now: () => number) => createStorageWithout(place, { now })
    let found = 0
    for (let seed = SEED_THAT_FINDS; seed < SEED_THAT_FINDS + SEEDS && found === 0; seed++) {
      found = (await simulateFleet(seed, createStorage)).wrong.length
    }
    expect(found).toBeGreaterThan(0)
  })
})
