import type { Clock } from '../base'

/** Few children are looked at in no time. */
const MANY_CHILDREN = 8
const SHORTEST_REST_MS = 10
export const LONGEST_REST_MS = 1000

/**
 * Who waits for many children does not look at all of them each time that one ends: what it costs to look is a tenth of
 * its time at most, however many there are.
 */
export function restAfter(lookMs: number, children: number): number {
  if (children < MANY_CHILDREN) return 0
  return Math.min(LONGEST_REST_MS, Math.max(SHORTEST_REST_MS, Math.ceil(10 * lookMs)))
}

/** When runs have rested that a worker suspended: a child may have ended meanwhile, and the run is due then. */
export class Rests {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #ends = new Set<number>()

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
  }

  note(restMs: number): void {
    if (restMs > 0) this.#ends.add(this.#clock.monotonic() + restMs)
  }

  /** Milliseconds until the first of them is over; `null` without one. */
  leftMs(): number | null {
    const now = this.#clock.monotonic()
    for (const end of this.#ends) if (end <= now) this.#ends.delete(end)
    return this.#ends.size === 0 ? null : Math.ceil(Math.min(...this.#ends) - now)
  }
}
