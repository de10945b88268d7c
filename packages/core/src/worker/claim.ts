import { type Admitted, ask, type Engine, recorded } from '../engine'
import { capability, type ClaimParams, type JobLimits, type LimitedClaim, type RunRecord, type Storage } from '../port'

export interface Claimed {
  readonly runs: readonly RunRecord[]
  /** When the claim was sent, by the worker's own clock: the leases count from there. */
  readonly sentAt: number
  /** No more was due. */
  readonly isAll: boolean
  /** Until a limit in the database may leave room for more; 0 when no time is known. */
  readonly opensInMs: number
}

/** What a worker has room for. */
interface Wanted {
  /** What it may begin now. */
  readonly admit: () => Admitted
  /** So many, if jobs had no limits. */
  readonly free: number
  readonly holdsSuspect: boolean
}

const NOTHING: Claimed = { runs: [], sentAt: 0, isAll: true, opensInMs: 0 }

/** Claims runs for one worker. */
export class Claimer {
  readonly #engine: Engine
  /** A claim may have taken runs although its answer never came: they are asked for by its token. */
  #unanswered: { readonly params: ClaimParams; readonly sentAt: number } | null = null

  #lastTurn: Promise<unknown> = Promise.resolve()

  constructor(engine: Engine) {
    this.#engine = engine
  }

  claim({ admit, free, holdsSuspect }: Wanted): Promise<Claimed> {
    return this.#inTurn(async () => {
      const found = await this.#findUnanswered()
      if (found.runs.length > 0) return found
      const now = admit()
      const admitted = now.wide === null ? now : await this.#widened(now.wide.without, admit, free)
      if (admitted.jobs.length === 0) return found
      const sentAt = this.#engine.environment.clock.monotonic()
      const params = { ...this.#params(admitted), holdsSuspect }
      this.#unanswered = { params, sentAt }
      const { limits } = admitted
      const { runs, opensInMs } =
        limits === null
          ? { runs: await ask(this.#engine, (storage) => storage.claim(params)), opensInMs: 0 }
          : await this.#claimWithin(params, limits)
      this.#unanswered = null
      return { runs, sentAt, isAll: runs.length < admitted.limit, opensInMs }
    })
  }

  /** A claim takes runs in their order, so one job with little room makes it small, but not while none of its runs waits. */
  async #widened(without: readonly string[], admit: Wanted['admit'], free: number): Promise<Admitted> {
    const { runInMs } = await ask(this.#engine, (storage) => storage.nextDue(without))
    // Jobs may have been paused meanwhile.
    const now = admit()
    const isWaited = runInMs !== null && runInMs <= 0
    return isWaited || now.wide === null ? now : { ...now, jobs: now.wide.jobs, limit: free }
  }

  #claimWithin(params: ClaimParams, limits: JobLimits): Promise<LimitedClaim> {
    return ask(this.#engine, (storage) =>
      capability(storage, 'limits', `Job "${limits.jobName}"`).claim(params, limits),
    )
  }

  /** As a claim, by another call: what it took is found by its token as well. */
  take(call: (storage: Storage, claimToken: string) => Promise<readonly RunRecord[]>): Promise<Claimed> {
    return this.#inTurn(async () => {
      const found = await this.#findUnanswered()
      if (found.runs.length > 0) return found
      const sentAt = this.#engine.environment.clock.monotonic()
      const params = { ...this.#params({ jobs: [], limit: 1 }), holdsSuspect: false }
      this.#unanswered = { params, sentAt }
      const runs = await ask(this.#engine, (storage) => call(storage, params.claimToken))
      this.#unanswered = null
      return { runs, sentAt, isAll: false, opensInMs: 0 }
    })
  }

  findUnanswered(): Promise<Claimed> {
    return this.#inTurn(() => this.#findUnanswered())
  }

  async #findUnanswered(): Promise<Claimed> {
    if (this.#unanswered === null) return NOTHING
    const { params, sentAt } = this.#unanswered
    const runs = await ask(this.#engine, (storage) => storage.claim({ ...params, repeat: true }))
    this.#unanswered = null
    return { runs, sentAt, isAll: false, opensInMs: 0 }
  }

  /** A claim whose answer is still on its way must not be taken for one that was lost. */
  #inTurn<T>(task: () => Promise<T>): Promise<T> {
    const turn = this.#lastTurn.then(task)
    this.#lastTurn = turn.catch(() => {})
    return turn
  }

  #params({ jobs, limit }: Pick<Admitted, 'jobs' | 'limit'>): Omit<ClaimParams, 'holdsSuspect'> {
    const { options, environment } = this.#engine
    return {
      workerId: options.workerId,
      claimToken: environment.createId(),
      jobs,
      limit,
      leaseMs: options.leaseMs,
      events: recorded(this.#engine, { type: 'run:start', runId: '', jobName: '', payload: null }),
    }
  }
}
