import { ask, type Engine, reportTrouble } from '../engine'
import type { AssignedRuns } from './assigned'
import { goRounds, NotMigratedError, SchemaTooNewError } from '../base'
import type { LeaseKeeper } from './lease'
import { recoverRuns } from './recovery'

const RECOVER_INTERVAL_MS = 1000
const INSPECT_INTERVAL_MS = 60_000

export interface HousekeepingParams {
  readonly engine: Engine
  readonly leases: LeaseKeeper
  readonly assigned: AssignedRuns
  /** Something may be there to claim. */
  readonly onRunnable: () => void
}

/** What a worker does beside running jobs: renew its leases, recover those of others, look at the schema. */
export class Housekeeping {
  readonly #engine: Engine
  readonly #leases: LeaseKeeper
  readonly #assigned: AssignedRuns
  readonly #onRunnable: () => void
  /** How to stop what is done at intervals, while it is. */
  #rounds: readonly (() => void)[] | null = null
  readonly #reportedJobs = new Set<string>()
  #refusal: NotMigratedError | SchemaTooNewError | null = null
  /** Until then others may only look dead, because nobody could renew. */
  #calmFrom = Number.NEGATIVE_INFINITY
  /** Looks after a pause whose renewal was not answered yet. */
  #catchingUp = 0
  #lastBeatAt = 0
  #lastLook = { monotonic: 0, wall: 0 }

  constructor({ engine, leases, assigned, onRunnable }: HousekeepingParams) {
    this.#engine = engine
    this.#leases = leases
    this.#assigned = assigned
    this.#onRunnable = onRunnable
  }

  /** False while the schema is missing, or too new for this code. */
  get mayClaim(): boolean {
    return this.#refusal === null
  }

  /** Why nothing may be claimed. */
  get refusal(): Error | null {
    return this.#refusal
  }

  /** Resolves when the schema was looked at and what was left behind was recovered, or the try failed. */
  async begin(): Promise<void> {
    const { clock } = this.#engine.environment
    this.#lastBeatAt = clock.monotonic()
    this.#lastLook = { monotonic: clock.monotonic(), wall: clock.now() }
    this.end()
    this.#rounds = [
      // Not awaited: a renewal that never answers must not keep the next look from happening.
      this.#every(this.#engine.options.heartbeatIntervalMs, async () => void this.#heartbeat()),
      this.#every(RECOVER_INTERVAL_MS, () => this.#attempt('recover', () => this.#recover())),
      this.#every(INSPECT_INTERVAL_MS, () => this.#attempt('inspect', () => this.#inspect())),
    ]
    await this.#attempt('inspect', () => this.#inspect())
    await this.#attempt('recover', () => this.#recover())
  }

  end(): void {
    for (const stop of this.#rounds ?? []) stop()
    this.#rounds = null
  }

  #every(ms: number, task: () => Promise<void>): () => void {
    return goRounds(this.#engine.environment.clock, ms, () => task().then(() => ms))
  }

  /** Renews and checks at once, as after a sleep of the machine or the tab. */
  lookNow(): void {
    void this.#heartbeat({ isAsked: true })
  }

  noteOutage(): void {
    this.#calmFrom = this.#engine.environment.clock.monotonic() + this.#engine.options.heartbeatIntervalMs
  }

  async #attempt(during: string, task: () => Promise<void>): Promise<void> {
    try {
      await task()
    } catch (error) {
      this.noteOutage()
      // What a look that was under way at the end finds closed is no trouble.
      if (this.#rounds !== null) reportTrouble(this.#engine, error, during)
    }
  }

  /**
   * After a pause of this process (a body kept the processor, the machine slept) nobody may have taken its runs: then the
   * storage is asked before anything is given up.
   */
  async #heartbeat({ isAsked = false } = {}): Promise<void> {
    const now = this.#engine.environment.clock.monotonic()
    const isLate = now - this.#lastBeatAt > 2 * this.#engine.options.heartbeatIntervalMs
    this.#lastBeatAt = now
    if (isLate) this.#catchingUp += 1
    // Several looks come at once after a pause: none of them may give up what the first is just renewing.
    if (this.#catchingUp === 0) this.#leases.checkTouch()
    const isAnswered = await (isLate || isAsked ? this.#leases.renewAfresh() : this.#leases.renew())
    if (!isAnswered) this.noteOutage()
    if (!isLate) return
    this.#catchingUp -= 1
    this.#leases.checkTouch()
  }

  /** Only a worker that is in touch itself can tell that others are not. */
  async #recover(): Promise<void> {
    if (!this.mayClaim) return this.#inspect()
    if (this.#hasSlept()) {
      this.noteOutage()
      await this.#heartbeat()
    }
    if (this.#engine.environment.clock.monotonic() < this.#calmFrom) return
    const held = this.#leases.heldRunIds()
    const runs = await recoverRuns({ engine: this.#engine, deadWorkerId: null, isCrash: true, held })
    const { admission } = this.#engine
    const isFreed = admission.hasPlaced() && !admission.isLed && (await this.#assigned.takeBack())
    if (runs.length > 0 || isFreed) this.#onRunnable()
  }

  /** On some systems the monotonic clock stands still while the machine sleeps, and the wall clock does not. */
  #hasSlept(): boolean {
    const { clock } = this.#engine.environment
    const { monotonic, wall } = this.#lastLook
    this.#lastLook = { monotonic: clock.monotonic(), wall: clock.now() }
    const passed = Math.max(clock.monotonic() - monotonic, clock.now() - wall)
    return passed > RECOVER_INTERVAL_MS + this.#engine.options.heartbeatIntervalMs
  }

  async #inspect(): Promise<void> {
    const { jobs, declared, events } = this.#engine
    const couldClaim = this.mayClaim
    try {
      await ask(this.#engine, async (storage) => storage.checkSchema?.())
      this.#refusal = null
    } catch (error) {
      if (error instanceof NotMigratedError || error instanceof SchemaTooNewError) this.#refusal = error
      throw error
    }
    if (!couldClaim) this.#onRunnable()
    const { unknownJobs } = await ask(this.#engine, (storage) => storage.nextDue([...jobs.keys()]))
    for (const jobName of unknownJobs) {
      // Of a declared job it is known that others execute it.
      if (this.#reportedJobs.has(jobName) || declared.has(jobName)) continue
      this.#reportedJobs.add(jobName)
      events.emit({ type: 'job:unknown', jobName })
    }
  }
}
