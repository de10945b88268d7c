import { type Fault, FAULTS } from './faults'
import type { Random } from './random'

/** How one seed is played. Each seed leaves out some faults and prefers others: that reaches further than the average. */
export interface Plan {
  readonly workers: number
  readonly leaseMs: number
  readonly maxCrashes: number
  readonly keepsHistory: boolean
  /** Multiplies the chance of every fault. */
  readonly roughness: number
  readonly faults: Readonly<Record<Fault, number>>
  readonly actions: number
  /** Callers are busy for so long. */
  readonly busyMs: number
  /** A paused machine's monotonic clock stands still; that of a stopped process does not. */
  readonly pauseStopsClock: boolean
  readonly storageClockJumps: boolean
}

export function createPlan(random: Random): Plan {
  const faults = Object.fromEntries(FAULTS.map((fault) => [fault, random.chance(0.35) ? 0 : 0.2 + random.next()]))
  return {
    workers: random.between(2, 4),
    leaseMs: random.pick([2500, 4000]),
    maxCrashes: random.pick([2, 3, 5]),
    keepsHistory: random.chance(0.7),
    roughness: random.pick([0.4, 1, 1.6]),
    faults: { ...(faults as Record<Fault, number>), [random.pick(FAULTS)]: 1 },
    actions: random.between(18, 34),
    busyMs: random.between(6000, 14_000),
    pauseStopsClock: random.chance(0.5),
    storageClockJumps: random.chance(0.3),
  }
}
