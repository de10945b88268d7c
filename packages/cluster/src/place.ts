import type { Durably } from '@coji/durably-core'
import type { Lead, PlacementStorage, TenantPlace, WorkerRecord } from '@coji/durably-core/storage'
import { choosePlaces, type Place, Turns, withRoom } from './placement'
import { Refusals } from './refusals'

interface PlacerParams {
  readonly durably: Durably
  readonly placement: PlacementStorage
}

/** What one look at what waits led to. */
export interface PlaceResult {
  /** How many runs were assigned. */
  readonly assigned: number
  /** None of those that were to be: somebody else leads. */
  readonly isLost: boolean
}

interface Look {
  readonly places: readonly Place[]
  readonly workers: readonly WorkerRecord[]
  readonly hasMore: boolean
}

/** Tenants that are looked at together, and runs that are assigned together. */
const TENANTS_AT_ONCE = 64
const RUNS_AT_ONCE = 200

/** Assigns what waits, as long as there is something that somebody can take. */
export class Placer {
  readonly #params: PlacerParams
  /** Where the last look at the tenants of each job ended: the next one goes on from there. */
  #from: readonly TenantPlace[] = []
  readonly #turns = new Turns()
  readonly #refusals = new Refusals()
  /** Whether any worker takes placed runs, as far as is known: where none does, runs that change are no reason to look. */
  mayPlace = true

  constructor(params: PlacerParams) {
    this.#params = params
  }

  async place(lead: Lead): Promise<PlaceResult> {
    let assigned = 0
    for (;;) {
      const { places, workers, hasMore } = await this.#look()
      if (places.length > 0) {
        const made = await this.#assign(lead, places, workers)
        assigned += made
        if (made === 0) return { assigned, isLost: true }
      }
      if (!hasMore) return { assigned, isLost: false }
    }
  }

  async #look(): Promise<Look> {
    const { placement } = this.#params
    const all = await placement.getWorkers()
    this.mayPlace = all.some(({ placedJobs }) => placedJobs.length > 0)
    const workers = withRoom(this.#refusals.without(all))
    const jobs = jobsOf(workers)
    if (jobs.length === 0) return { places: [], workers, hasMore: false }
    const room = workers.reduce((sum, { capacity, running, assigned }) => sum + capacity - running - assigned, 0)
    const limitEach = Math.min(room, RUNS_AT_ONCE)
    const suspectsOf = jobsOf(workers.filter(({ holdsSuspect }) => !holdsSuspect))
    const waiting = await placement.waiting({
      ...{ jobs, suspectsOf, limitEach },
      ...{ from: this.#from, tenants: TENANTS_AT_ONCE },
    })
    this.#refusals.noteBack(waiting.runs)
    const able = withRoom(this.#refusals.without(workers))
    // What was looked at may have hidden the runs of jobs that somebody still takes.
    if (able.length < workers.length || jobsOf(able).length < jobs.length)
      return { places: [], workers: able, hasMore: true }
    this.#from = waiting.upTo
    const places = choosePlaces(able, waiting, this.#turns).slice(0, RUNS_AT_ONCE)
    return { places, workers, hasMore: waiting.upTo.length > 0 || places.length === RUNS_AT_ONCE }
  }

  async #assign(lead: Lead, places: readonly Place[], workers: readonly WorkerRecord[]): Promise<number> {
    const { durably, placement } = this.#params
    const events = places.map(({ run: { runId, jobName }, workerId }) => {
      return { type: 'run:assign', runId, jobName, workerId } as const
    })
    const made = await placement.assign(
      lead,
      places.map(({ run: { runId, version, concurrencyKey }, workerId }, index) => {
        const event = events[index]
        const takesSlot = concurrencyKey !== null
        return {
          runId,
          version,
          workerId,
          takesSlot,
          events: event === undefined ? [] : durably.drafts.recorded(event),
        }
      }),
    )
    for (const [index, event] of events.entries()) {
      const place = places[index]
      if (made[index] !== true || place === undefined) continue
      this.#refusals.noteGiven(place, workers)
      durably.emit(event)
    }
    return made.filter((isMade) => isMade).length
  }
}

function jobsOf(workers: readonly WorkerRecord[]): readonly string[] {
  return [...new Set(workers.flatMap(({ placedJobs }) => placedJobs))]
}
