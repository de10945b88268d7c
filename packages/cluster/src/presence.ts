import type { Durably } from '@coji/durably-core'
import { hasLabels, type StartedTerm } from '@coji/durably-core/extend'
import type { PlacementStorage, WorkerPresence } from '@coji/durably-core/storage'

interface PresenceParams {
  readonly durably: Durably
  readonly placement: PlacementStorage
  readonly labels: Readonly<Record<string, string>>
  readonly codeVersion: string | null
  readonly leaseMs: number
}

const NOTE_JOBS_AFTER_MS = 3_600_000

/** Tells the others of this worker, as long as it is started: what it can take, and when it leaves. */
export class Presence {
  readonly #params: PresenceParams
  #callOff: () => void = () => {}
  #isStarted = false
  #jobsNotedAt = Number.NEGATIVE_INFINITY
  #isLeaving = false
  #leaveNow: () => void = () => {}
  /** One after the other: the last word must be the last. */
  #said: Promise<void> = Promise.resolve()

  constructor(params: PresenceParams) {
    this.#params = params
  }

  start({ workerStopped }: StartedTerm): () => Promise<void> {
    this.#isStarted = true
    this.#jobsNotedAt = Number.NEGATIVE_INFINITY
    this.#turn()
    return () => this.#leave(workerStopped)
  }

  /** It need not have ended what it has in hand. */
  leaveAtOnce(): void {
    this.#isLeaving = true
    this.#leaveNow()
  }

  #turn(): void {
    const { durably, leaseMs } = this.#params
    this.#callOff()
    void this.#say(presenceOf(durably))
    this.#callOff = durably.drafts.environment.clock.schedule(leaseMs / 3, () => this.#turn())
  }

  /** What is in hand is brought to its end first, and the leader assigns no more meanwhile. */
  async #leave(workerStopped: Promise<void>): Promise<void> {
    const saying = this.#say('draining')
    const asked = new Promise<void>((resolve) => {
      this.#leaveNow = resolve
    })
    if (!this.#isLeaving) await Promise.race([workerStopped, asked])
    this.#isStarted = false
    this.#callOff()
    await saying
    await this.#say('detached')
  }

  #say(presence: WorkerPresence): Promise<void> {
    this.#said = this.#said.then(() => this.#beat(presence))
    return this.#said
  }

  async #beat(presence: WorkerPresence): Promise<void> {
    const { durably, placement, labels, codeVersion, leaseMs } = this.#params
    const { workerId, concurrency } = durably.health()
    try {
      const placedJobs = placedJobsOf(durably, labels)
      await placement.beat({
        ...{ workerId, presence, capacity: concurrency, placedJobs, labels, codeVersion, ttlMs: leaseMs },
      })
      await this.#noteJobs()
    } catch (error) {
      if (this.#isStarted) durably.reportError(error, 'presence')
    }
  }

  /** Again now and then: a worker that nobody heard of for a day is forgotten, and its jobs with it. */
  async #noteJobs(): Promise<void> {
    const { durably, placement, codeVersion } = this.#params
    const now = durably.drafts.environment.clock.monotonic()
    if (now - this.#jobsNotedAt < NOTE_JOBS_AFTER_MS) return
    await placement.noteJobs(codeVersion ?? '', jobsOf(durably))
    this.#jobsNotedAt = now
  }
}

function presenceOf(durably: Durably): WorkerPresence {
  return durably.health().worker === 'running' ? 'active' : 'draining'
}

/** Those whose runs this worker would start if they were assigned to it. */
function placedJobsOf(durably: Durably, labels: Readonly<Record<string, string>>): readonly string[] {
  const { paused } = durably.health()
  return durably.drafts
    .jobs()
    .filter(
      ({ name, placement }) => placement !== null && hasLabels(labels, placement.labels) && !paused.includes(name),
    )
    .map(({ name }) => name)
}

function jobsOf(durably: Durably) {
  return durably.drafts.jobs().map(({ name, version, placement, concurrency, rateLimit, scope, timeoutMs }) => {
    const options = JSON.stringify({ placement, concurrency, rateLimit, scope, timeoutMs })
    return { name, version: version ?? '', options }
  })
}
