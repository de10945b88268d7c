import type { Instant, KnownJobBeat, KnownJobRecord, WorkerBeat } from '../port'
import type { Clock } from './clock'

/** A worker as it told of itself. */
export interface WorkerRow extends WorkerBeat {
  readonly firstBeatAt: Instant
  readonly lastBeatAt: Instant
  readonly aliveUntil: Instant
}

/** Workers that have told of themselves, and the jobs that they know. */
export class WorkerTable {
  readonly #workers = new Map<string, WorkerRow>()
  readonly #jobs = new Map<string, KnownJobRecord>()

  beat(beat: WorkerBeat, clock: Clock): void {
    const now = clock.now()
    const firstBeatAt = this.#workers.get(beat.workerId)?.firstBeatAt ?? now
    const labels = Object.freeze({ ...beat.labels })
    const placedJobs = Object.freeze([...beat.placedJobs])
    this.#workers.set(beat.workerId, {
      ...beat,
      ...{ labels, placedJobs, firstBeatAt, lastBeatAt: now, aliveUntil: clock.in(beat.ttlMs) },
    })
  }

  isAlive(workerId: string | null, clock: Clock): boolean {
    const worker = this.#workers.get(workerId ?? '')
    return worker !== undefined && worker.presence !== 'detached' && worker.aliveUntil > clock.now()
  }

  all(): readonly WorkerRow[] {
    return [...this.#workers.values()].sort((a, b) => (a.workerId < b.workerId ? -1 : 1))
  }

  remove(workerId: string): void {
    this.#workers.delete(workerId)
  }

  noteJobs(codeVersion: string, jobs: readonly KnownJobBeat[], clock: Clock): void {
    for (const job of jobs) {
      const key = JSON.stringify([job.name, job.version, codeVersion])
      this.#jobs.set(key, { ...job, codeVersion, lastSeenAt: clock.now() })
    }
  }

  /** Those that were told of until then, of code that no worker has. */
  forgetJobs(until: Instant): void {
    const current = new Set([...this.#workers.values()].map(({ codeVersion }) => codeVersion ?? ''))
    for (const [key, { codeVersion, lastSeenAt }] of this.#jobs) {
      if (lastSeenAt <= until && !current.has(codeVersion)) this.#jobs.delete(key)
    }
  }

  jobs(): readonly KnownJobRecord[] {
    const placeOf = ({ name, version, codeVersion }: KnownJobRecord) => JSON.stringify([name, version, codeVersion])
    return [...this.#jobs.values()].sort((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1))
  }
}
