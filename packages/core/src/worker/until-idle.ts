import { type Clock, type OptionNames, toInstant } from '../base'
import { ask, type Engine, reportTrouble } from '../engine'
import type { NextDue } from '../port'
import type { Execution } from './execution'
import { LONGEST_REST_MS } from '../step'

/** When `runUntilIdle` stops although there is more to do. */
export interface DrainOptions {
  /** After this many milliseconds nothing new begins; what is in flight has 5 s, then its run is released. */
  readonly budgetMs?: number | undefined
  /** Aborting it is as if `budgetMs` were over. */
  readonly signal?: AbortSignal | undefined
}

/** What `runUntilIdle` did. */
export interface DrainResult {
  /** Executions begun. */
  readonly ran: number
  /** When there will be something to do again; `null` when nothing is waiting. */
  readonly nextWakeAt: string | null
}

/** The time that a call of `runUntilIdle` has. */
export interface Budget {
  isOver: boolean
  /** What was in flight when it was over. */
  remaining: readonly Execution[]
}

export const DRAIN_OPTIONS: OptionNames<DrainOptions> = { budgetMs: true, signal: true }

/**
 * An execution has ended, a budget is over, or a run has rested: whoever drains looks again. A promise for all of that
 * would keep each of its waits.
 */
export class Turns {
  readonly #clock: Pick<Clock, 'schedule'>
  readonly #waiting = new Set<() => void>()

  constructor(clock: Pick<Clock, 'schedule'>) {
    this.#clock = clock
  }

  take(): void {
    for (const goOn of this.#waiting) goOn()
    this.#waiting.clear()
  }

  /** Resolves after so many milliseconds at the latest; `null`: however long it takes. */
  async next(withinMs: number | null): Promise<void> {
    const callOff = withinMs === null ? () => {} : this.#clock.schedule(withinMs, () => this.take())
    await new Promise<void>((resolve) => this.#waiting.add(resolve))
    callOff()
  }
}

function nextDue(engine: Engine, jobs: readonly string[]): Promise<NextDue> {
  return ask(engine, (storage) => storage.nextDue(jobs))
}

/** A run that has children to look at is due in a moment: what is due leads to it. `null` when none is. */
export async function restLeftMs(engine: Engine, restedInMs: number | null): Promise<number | null> {
  if (restedInMs === null) return null
  const leftMs = Math.max(1, restedInMs)
  try {
    const { runInMs } = await nextDue(engine, engine.admission.open())
    if (runInMs === null || runInMs > LONGEST_REST_MS) return null
    return Math.max(1, Math.min(runInMs, leftMs))
  } catch (error) {
    reportTrouble(engine, error, 'read next due')
    return leftMs
  }
}

interface KnownDue {
  /** `null` also for what is due now and was not to be had. */
  readonly dueMs: number | null
  /** Something will be due; not told without an answer. */
  readonly expectsLater?: boolean
}

export async function knownDue(engine: Engine): Promise<KnownDue> {
  const open = engine.admission.open()
  try {
    const { runInMs } = await nextDue(engine, open)
    // Of jobs that are closed it was not asked.
    const expectsLater = runInMs !== null || open.length < engine.jobs.size
    return { dueMs: runInMs === null || runInMs <= 0 ? null : runInMs, expectsLater }
  } catch (error) {
    reportTrouble(engine, error, 'read next due')
    return { dueMs: null }
  }
}

interface Drained {
  /** The call was, not what is due. */
  readonly isOver: boolean
  /** When a rate lets a job begin more, by the monotonic clock. */
  readonly opensAt: number
}

/** When to come again: at the next run, the next end of a lease, or when a limit opens. */
export async function nextWakeAt(engine: Engine, { isOver, opensAt }: Drained): Promise<string | null> {
  const { options, environment, admission } = engine
  const { jobs, closedByRate } = admission.openings()
  const { runInMs, leaseInMs } = await nextDue(engine, jobs)
  const hasOpened = opensAt <= environment.clock.monotonic()
  // Due and still not claimed: its concurrency key is taken, by a run whose end nobody will tell this process.
  const isBlocked = runInMs !== null && runInMs <= 0 && !isOver && !hasOpened
  const waits = [isBlocked ? options.pollingIntervalMs : runInMs, leaseInMs]
  for (const { job, opensInMs } of closedByRate) {
    const closed = await nextDue(engine, [job])
    waits.push(closed.runInMs === null ? null : Math.max(closed.runInMs, opensInMs))
  }
  const known = waits.filter((ms) => ms !== null)
  return known.length === 0 ? null : toInstant(environment.clock.now() + Math.max(0, Math.min(...known)))
}
