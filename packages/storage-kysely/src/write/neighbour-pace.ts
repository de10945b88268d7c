const LEAST_MS = 50
const MOST_MS = 500
const COMMITS_WATCHED = 16
/** A neighbour that locked a row just before us commits within some times of what a commit takes. */
const COMMITS_WAITED_FOR = 4

/**
 * How long an honest neighbour keeps a row locked, judged by our own commits: with a synchronous replica each of them waits
 * for another machine. The quickest of the last ones counts, which itself waited for nobody.
 */
export class NeighbourPace {
  readonly #lastMs: number[] = []

  note(commitMs: number): void {
    this.#lastMs.push(commitMs)
    if (this.#lastMs.length > COMMITS_WATCHED) this.#lastMs.shift()
  }

  get patienceMs(): number {
    if (this.#lastMs.length === 0) return LEAST_MS
    return Math.round(Math.min(Math.max(Math.min(...this.#lastMs) * COMMITS_WAITED_FOR, LEAST_MS), MOST_MS))
  }
}
