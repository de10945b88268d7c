import type { ClaimParams } from '@coji/durably-core/storage'
import type { Watchers } from '../watch'

export interface KeyPlace {
  readonly tenant: string
  readonly key: string
}

const BEFORE_ALL_KEYS: KeyPlace = { tenant: '', key: '' }

/**
 * Where the claims of one worker are among the keys that wait, and how far they still have to go: a round is over when all
 * keys were looked at since it began, and nothing was found.
 */
export class KeyWalk {
  #place = BEFORE_ALL_KEYS
  /** How often the last key has to be reached until the round is over. */
  #passesLeft = 0

  #isBlocked = false

  /** Whether all that came first was blocked at the last look. */
  get isBlocked(): boolean {
    return this.#isBlocked
  }

  get place(): KeyPlace {
    return this.#place
  }

  get isOver(): boolean {
    return this.#passesLeft === 0
  }

  /** A claim begins: it goes on with the round that is not over, or begins one. */
  begin(): void {
    if (this.isOver) this.beginAnew()
  }

  beginAnew(): void {
    this.#passesLeft = this.#place === BEFORE_ALL_KEYS ? 1 : 2
  }

  /** `null`: the last key was reached. */
  goOn(place: KeyPlace | null): void {
    this.#isBlocked = true
    if (place === null && this.#passesLeft > 0) this.#passesLeft -= 1
    this.#place = place ?? BEFORE_ALL_KEYS
  }

  /** What there is was seen without it; where it was it goes on the next time. */
  end(): void {
    this.#isBlocked = false
    this.#passesLeft = 0
  }

  /** Something became due, maybe behind the walk, or where it looks just now. */
  noteDue(): void {
    if (!this.isOver) this.#passesLeft = 2
  }
}

/** A worker has few sets of jobs at a time; a walk that is forgotten begins at the first key. */
const MOST_WALKS = 64

/** Each worker goes its own way, and for each set of jobs another one. */
export class KeyWalks {
  readonly #walks = new Map<string, KeyWalk>()

  constructor(watchers: Watchers) {
    watchers.subscribe((hint) => {
      if (hint.kind !== 'runs' || hint.workerId !== undefined) return
      for (const walk of this.#walks.values()) walk.noteDue()
    })
  }

  of({ workerId, jobs }: ClaimParams): KeyWalk {
    const name = JSON.stringify([workerId, ...jobs])
    const walk = this.#walks.get(name) ?? new KeyWalk()
    // The one that was used last is the last to be forgotten.
    this.#walks.delete(name)
    this.#walks.set(name, walk)
    const [oldest] = this.#walks.keys()
    if (this.#walks.size > MOST_WALKS && oldest !== undefined) this.#walks.delete(oldest)
    return walk
  }
}
