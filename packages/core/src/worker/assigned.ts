import { ask, type Engine, recorded, reportTrouble } from '../engine'
import {
  type AssignedRun,
  capability,
  PATIENCE_WITH_THE_LIVING,
  type PlacementStorage,
  REASSIGN_AFTER_MS,
  type Storage,
} from '../port'
import type { Claimed, Claimer } from './claim'

/** Of those that are assigned so many are looked at together. */
const AT_ONCE = 100

/** What a worker has room for. */
interface Room {
  readonly free: number
  readonly holdsSuspect: boolean
}

/** What is set for all processes, as it is now. */
export interface LiveSettings {
  get(): Promise<{ readonly reassignAfterSeconds?: number }>
}

const NOTHING: Pick<Claimed, 'runs' | 'sentAt'> = { runs: [], sentAt: 0 }

/** Runs that a leader has assigned to this worker. */
export class AssignedRuns {
  readonly #engine: Engine
  readonly #claimer: Claimer
  readonly #settings: LiveSettings

  constructor(engine: Engine, claimer: Claimer, settings: LiveSettings) {
    this.#engine = engine
    this.#claimer = claimer
    this.#settings = settings
  }

  /** Starts those that there is room for, and declines the others. */
  async start(room: Room): Promise<Pick<Claimed, 'runs' | 'sentAt'>> {
    const runs = await this.#look()
    if (runs.length === 0) return NOTHING
    const { wanted, others } = this.#choose(runs, room)
    const started = wanted.length === 0 ? NOTHING : await this.#take(wanted)
    if (others.length > 0) await this.#decline(others)
    return started
  }

  /** Whoever stops starts none of them. What fails is taken back later. */
  async declineAll(): Promise<void> {
    if (!this.#engine.admission.hasPlaced()) return
    try {
      const runs = await this.#look()
      if (runs.length > 0) await this.#decline(runs)
    } catch (error) {
      reportTrouble(this.#engine, error, 'decline')
    }
  }

  /** Where nobody leads: what was assigned, and not started in time, can be claimed again. Answers whether there was any. */
  async takeBack(): Promise<boolean> {
    const { events } = this.#engine
    const { reassignAfterSeconds } = await this.#settings.get()
    const reassignAfterMs = reassignAfterSeconds === undefined ? REASSIGN_AFTER_MS : reassignAfterSeconds * 1000
    const ids = { runId: '', jobName: '' }
    const event = { type: 'run:orphan', ...ids, because: 'overdue' } as const
    const orphaned = await this.#ask((placement) =>
      placement.orphan({
        lead: null,
        reassignAfterMs,
        livingAfterMs: reassignAfterMs * PATIENCE_WITH_THE_LIVING,
        limit: AT_ONCE,
        events: recorded(this.#engine, event),
      }),
    )
    for (const { id: runId, jobName } of orphaned) events.emit({ ...event, runId, jobName })
    return (await this.#ask((placement) => placement.free(AT_ONCE))) > 0
  }

  async #look(): Promise<readonly AssignedRun[]> {
    const { options, admission } = this.#engine
    const { runs, isLed } = await this.#ask((placement) => placement.assigned(options.workerId, AT_ONCE))
    admission.isLed = isLed
    return runs
  }

  #choose(runs: readonly AssignedRun[], { free, holdsSuspect }: Room) {
    const { admission } = this.#engine
    const [wanted, others]: [AssignedRun[], AssignedRun[]] = [[], []]
    const chosen = new Map<string, number>()
    let takesSuspect = !holdsSuspect
    for (const run of runs) {
      const before = chosen.get(run.jobName) ?? 0
      const fits = wanted.length < free && before < admission.roomToStart(run.jobName)
      const isWanted = fits && (!run.isSuspect || takesSuspect)
      const alike = isWanted ? wanted : others
      alike.push(run)
      if (!isWanted) continue
      chosen.set(run.jobName, before + 1)
      if (run.isSuspect) takesSuspect = false
    }
    return { wanted, others }
  }

  #take(runs: readonly AssignedRun[]) {
    const { workerId, leaseMs } = this.#engine.options
    const events = recorded(this.#engine, { type: 'run:start', runId: '', jobName: '', payload: null })
    return this.#claimer.take((storage, claimToken) =>
      placementOf(storage).start({ workerId, runs, events, claimToken, leaseMs }),
    )
  }

  async #decline(runs: readonly AssignedRun[]): Promise<void> {
    const { options, events } = this.#engine
    const event = { type: 'run:orphan', runId: '', jobName: '', because: 'declined' } as const
    const params = { workerId: options.workerId, runs, events: recorded(this.#engine, event) }
    const declined = await this.#ask((placement) => placement.decline(params))
    for (const [index, { runId, jobName }] of runs.entries()) {
      if (declined[index] === true) events.emit({ ...event, runId, jobName })
    }
  }

  #ask<T>(call: (placement: PlacementStorage) => Promise<T>): Promise<T> {
    return ask(this.#engine, (storage) => call(placementOf(storage)))
  }
}

function placementOf(storage: Storage): PlacementStorage {
  return capability(storage, 'cluster', 'A job with a placement').placement
}
