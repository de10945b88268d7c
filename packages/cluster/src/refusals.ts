import type { WaitingRun, WorkerRecord } from '@coji/durably-core/storage'
import type { Place } from './placement'

interface Given {
  readonly workerId: string
  readonly version: number
  /** The last sign of life that was known of the worker. */
  readonly beatAt: string
}

/** An assignment is one change of the run, and so is its end without a start. */
const CHANGES_OF_A_REFUSAL = 2
const MOST_GIVEN = 10_000

/**
 * Workers that gave a run back: such a worker has a limit of its own for the job, or holds more than the database knows, as
 * when the answer to its last commit got lost. It would be offered the same run again at once, and again. It is left alone with
 * that job until its next sign of life; others it may get.
 */
export class Refusals {
  readonly #given = new Map<string, Given>()
  /** By worker and job: the sign of life at which the worker gave one back. */
  readonly #refusedAt = new Map<string, string>()

  noteGiven({ run: { runId, version }, workerId }: Place, workers: readonly WorkerRecord[]): void {
    if (this.#given.size === MOST_GIVEN) this.#given.clear()
    const beatAt = workers.find((worker) => worker.workerId === workerId)?.lastBeatAt ?? ''
    this.#given.set(runId, { workerId, version, beatAt })
  }

  /** Looks which of these runs have come back. */
  noteBack(waiting: readonly WaitingRun[]): void {
    for (const { runId, version, jobName } of waiting) {
      const given = this.#given.get(runId)
      this.#given.delete(runId)
      if (given === undefined || version !== given.version + CHANGES_OF_A_REFUSAL) continue
      if (this.#refusedAt.size === MOST_GIVEN) this.#refusedAt.clear()
      this.#refusedAt.set(nameOf(given.workerId, jobName), given.beatAt)
    }
  }

  /** These workers, without the jobs that they gave back a run of since their last sign of life. */
  without(workers: readonly WorkerRecord[]): readonly WorkerRecord[] {
    if (this.#refusedAt.size === 0) return workers
    return workers.map((worker) => ({
      ...worker,
      placedJobs: worker.placedJobs.filter((job) => !this.#refuses(worker, job)),
    }))
  }

  #refuses({ workerId, lastBeatAt }: WorkerRecord, job: string): boolean {
    const name = nameOf(workerId, job)
    const refusedAt = this.#refusedAt.get(name)
    if (refusedAt === undefined) return false
    if (refusedAt === lastBeatAt) return true
    this.#refusedAt.delete(name)
    return false
  }
}

function nameOf(workerId: string, job: string): string {
  return JSON.stringify([workerId, job])
}
