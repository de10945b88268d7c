import type { Clock } from './environment'

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
