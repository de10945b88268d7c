import type { Admitted } from './admission'
import { ask, recorded, type Engine } from './engine'
import { capability } from './runs'
import type { ClaimParams, JobLimits, LimitedClaim, RunRecord } from './storage'

export interface Claimed {
  readonly runs: readonly RunRecord[]
  /** When the claim was sent, by the worker's own clock: the leases count from there. */
  readonly sentAt: number
  /** Until a limit in the database may leave room for more; 0 when no time is known. */
  readonly opensInMs: number
}

const NOTHING: Claimed = { runs: [], sentAt: 0, opensInMs: 0 }

/** Claims runs for one worker. */
export class Claimer {
  readonly #engine: Engine
  /** A claim may have taken runs although its answer never came: they are asked for by its token. */
  #unanswered: { readonly params: ClaimParams; readonly sentAt: number } | null = null

  #lastTurn: Promise<unknown> = Promise.resolve()

  constructor(engine: Engine) {
    this.#engine = engine
  }

  claim(admitted: Admitted, holdsSuspect: boolean): Promise<Claimed> {
    return this.#inTurn(async () => {
      const found = await this.#findUnanswered()
      if (found.runs.length > 0 || admitted.jobs.length === 0) return found
      const sentAt = this.#engine.environment.clock.monotonic()
      const params = { ...this.#params(admitted), holdsSuspect }
      this.#unanswered = { params, sentAt }
      const { limits } = admitted
      const { runs, opensInMs } =
        limits === null
          ? { runs: await ask(this.#engine, (storage) => storage.claim(params)), opensInMs: 0 }
          : await this.#claimWithin(params, limits)
      this.#unanswered = null
      return { runs, sentAt, opensInMs }
    })
  }

  #claimWithin(params: ClaimParams, limits: JobLimits): Promise<LimitedClaim> {
    return ask(this.#engine, (storage) =>
      capability(storage, 'limits', `Job "${limits.jobName}"`).claim(params, limits),
    )
  }

  findUnanswered(): Promise<Claimed> {
    return this.#inTurn(() => this.#findUnanswered())
  }

  async #findUnanswered(): Promise<Claimed> {
    if (this.#unanswered === null) return NOTHING
    const { params, sentAt } = this.#unanswered
    const runs = await ask(this.#engine, (storage) => storage.claim({ ...params, repeat: true }))
    this.#unanswered = null
    return { runs, sentAt, opensInMs: 0 }
  }

  /** A claim whose answer is still on its way must not be taken for one that was lost. */
  #inTurn<T>(task: () => Promise<T>): Promise<T> {
    const turn = this.#lastTurn.then(task)
    this.#lastTurn = turn.catch(() => {})
    return turn
  }

  #params({ jobs, limit }: Admitted): Omit<ClaimParams, 'holdsSuspect'> {
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
