import type { WaitingRun, WorkerRecord } from '@coji/durably-core/storage'
import type { Place } from './placement'

interface Given {
  readonly workerId: string
  readonly version: number
}

/** An assignment is one change of the run, and so is its end without a start. */
const CHANGES_OF_A_REFUSAL = 2
const MOST_GIVEN = 10_000

/**
 * Workers that gave a run back. What such a worker holds is more than the database knows, as when the answer to its last
 * commit got lost; it would be offered the same run again at once, and again. It is left alone until its next sign of life.
 */
export class Refusals {
  readonly #given = new Map<string, Given>()
  readonly #beatOf = new Map<string, string>()

  noteGiven({ run: { runId, version }, workerId }: Place): void {
    if (this.#given.size === MOST_GIVEN) this.#given.clear()
    this.#given.set(runId, { workerId, version })
  }

  /** Looks which of these runs have come back, and answers the workers that may get some. */
  without(workers: readonly WorkerRecord[], waiting: readonly WaitingRun[]): readonly WorkerRecord[] {
    for (const { runId, version } of waiting) {
      const given = this.#given.get(runId)
      this.#given.delete(runId)
      if (given === undefined || version !== given.version + CHANGES_OF_A_REFUSAL) continue
      const worker = workers.find(({ workerId }) => workerId === given.workerId)
      if (worker !== undefined) this.#beatOf.set(worker.workerId, worker.lastBeatAt)
    }
    const able = workers.filter(({ workerId, lastBeatAt }) => this.#beatOf.get(workerId) !== lastBeatAt)
    for (const { workerId } of able) this.#beatOf.delete(workerId)
    return able
  }
}
