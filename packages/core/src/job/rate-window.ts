import type { RateLimit } from '../port'

/** Below this, what is forgotten is not worth moving the rest for. */
const WORTH_MOVING = 64

/** When things began, as far back as a rate limit looks: `max` of them in any `per` ms, wherever one begins to count. */
export class RateWindow {
  readonly #limit: RateLimit
  /** Oldest first; those before `#first` are forgotten. */
  #begun: number[] = []
  #first = 0

  constructor(limit: RateLimit) {
    this.#limit = limit
  }

  note(now: number): void {
    this.#begun.push(now)
  }

  room(now: number): number {
    this.#forgetBefore(now)
    return Math.max(0, this.#limit.max - (this.#begun.length - this.#first))
  }

  /** `null` when there is room now. */
  opensAt(now: number): number | null {
    if (this.room(now) > 0) return null
    const blocking = this.#begun[this.#begun.length - this.#limit.max] ?? now
    return blocking + this.#limit.per
  }

  #forgetBefore(now: number): void {
    for (let at = this.#begun[this.#first]; at !== undefined && now - at >= this.#limit.per; ) {
      this.#first += 1
      at = this.#begun[this.#first]
    }
    if (this.#first < WORTH_MOVING || this.#first * 2 < this.#begun.length) return
    this.#begun = this.#begun.slice(this.#first)
    this.#first = 0
  }
}

/** When a rate that the database counts lets more begin: what it said last. */
export class RateElsewhere implements Pick<RateWindow, 'note' | 'room' | 'opensAt'> {
  #opensAt = Number.NEGATIVE_INFINITY

  opensNext(at: number): void {
    this.#opensAt = at
  }

  note(): void {}

  room(now: number): number {
    return now < this.#opensAt ? 0 : Number.POSITIVE_INFINITY
  }

  opensAt(now: number): number | null {
    return now < this.#opensAt ? this.#opensAt : null
  }
}
