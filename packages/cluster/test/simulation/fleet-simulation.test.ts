import { createStorageWithout, type GuardPlace } from '@coji/durably-core/simulation'
import { type Guard, LIFECYCLE, type TransitionName } from '@coji/durably-core/storage'
import { createMemoryStorage } from '@coji/durably-core/memory'
import { describe, expect, it } from 'vitest'
import { LONG_PATIENCE_MS } from '../../../../test/pace'
import { reportSuite } from '../../../../test/report'
import { scaled } from '../../../../test/scale'
import { simulateFleet } from './simulate-fleet'

/** Each is found by one of the first few. */
const MOST_SEEDS = 20
const SEEDS = scaled({ quick: 4, full: 400 })

const OF_A_CLUSTER = ['assign', 'start', 'decline', 'orphan', 'free'] as const satisfies readonly TransitionName[]
/** What protects a run, whoever leads. The other transitions have the simulation of the core and the contract. */
const OF_A_LEASE = ['commit', 'renew', 'complete', 'recover'] as const satisfies readonly TransitionName[]
const GUARDED = [...OF_A_CLUSTER, ...OF_A_LEASE].flatMap((transition) =>
  LIFECYCLE[transition].guards.map((guard: Guard): GuardPlace => ({ transition, guard })),
)

describe('five processes with leaders, each call of which may fail, get lost or take its time', {
  timeout: LONG_PATIENCE_MS,
}, () => {
  it('keep to the lifecycle, assign under one leader at a time, and end all work when the faults end', async () => {
    const seen = new Map<TransitionName, number>()
    let [leaders, continued] = [0, 0]
    // A silent worker that keeps its run is rare: a few more seeds until there was one.
    for (let seed = 1; seed <= SEEDS || (continued === 0 && seed <= SEEDS + MOST_SEEDS); seed++) {
      const report = await simulateFleet(seed)
      expect({ seed, wrong: report.wrong }).toEqual({ seed, wrong: [] })
      for (const [transition, count] of report.seen) seen.set(transition, (seen.get(transition) ?? 0) + count)
      leaders += report.leaders
      continued += report.continued
    }
    for (const transition of [...OF_A_CLUSTER, ...OF_A_LEASE, 'claim'] as const) {
      expect([transition, (seen.get(transition) ?? 0) > 0]).toEqual([transition, true])
    }
    expect(continued).toBeGreaterThan(0)
    reportSuite({
      suite: 'a cluster under faults',
      seeds: SEEDS,
      leaders,
      continued,
      assignments: seen.get('assign') ?? 0,
    })
  })

  it('are found out where a delivery loses its runs', async () => {
    const createStorage = (now: () => number) => {
      const storage = createMemoryStorage({ now })
      const { inbox } = storage.cluster
      const deliver: typeof inbox.deliver = (lead, deliveries) =>
        inbox.deliver(
          lead,
          deliveries.map((delivery) => ({ ...delivery, runs: [] })),
        )
      return { ...storage, cluster: { ...storage.cluster, inbox: { ...inbox, deliver } } }
    }
    expect(await findWrong(createStorage)).toEqual([expect.stringContaining('were never delivered')])
  })

  it.each(GUARDED)('are found out where $transition does not ask for its guard $guard', async (place) => {
    expect(await findWrong((now) => createStorageWithout(place, { now }))).not.toEqual([])
  })
})

/** What the first of some seeds finds that finds anything. */
async function findWrong(createStorage: Parameters<typeof simulateFleet>[1]): Promise<readonly string[]> {
  for (let seed = 1; seed <= MOST_SEEDS; seed++) {
    const { wrong } = await simulateFleet(seed, createStorage)
    if (wrong.length > 0) return wrong
  }
  return []
}
