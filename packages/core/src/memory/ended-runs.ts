import type { RunEntry } from './run-entry'

/**
 * Ended runs in the order of ending, so that the oldest can be dropped. A child stays with its parent until that one
 * has ended too: it may still ask for the output. What left the queue is skipped when it is met.
 */
export class EndedRuns {
  #queue: EndedPlace[] = []
  #start = 0
  #count = 0

  get count(): number {
    return this.#count
  }

  add(entry: RunEntry, liveParent: RunEntry | undefined): void {
    for (const child of entry.keptChildren ?? []) this.#push(child)
    entry.keptChildren = null
    if (liveParent === undefined) this.#push(entry)
    else liveParent.keptChildren = (liveParent.keptChildren ?? new Set()).add(entry)
  }

  /** The run was removed, or goes on. */
  forget(entry: RunEntry, parent: RunEntry | undefined): void {
    parent?.keptChildren?.delete(entry)
    if (entry.endedPlace !== null) this.#count -= 1
    entry.endedPlace = null
  }

  takeOldest(): RunEntry | undefined {
    while (this.#start < this.#queue.length) {
      const place = this.#queue[this.#start]
      this.#start += 1
      if (place !== undefined && isTaken(place)) return place.entry
    }
    return undefined
  }

  #push(entry: RunEntry): void {
    entry.endedPlace = { entry }
    this.#queue.push(entry.endedPlace)
    this.#count += 1
    if (this.#queue.length > 2 * this.#count + 64) this.#compact()
  }

  #compact(): void {
    this.#queue = this.#queue.slice(this.#start).filter(isTaken)
    this.#start = 0
  }
}

/** A run that ends a second time gets a new place; the old one is empty then. */
export interface EndedPlace {
  readonly entry: RunEntry
}

function isTaken(place: EndedPlace): boolean {
  return place.entry.endedPlace === place
}
