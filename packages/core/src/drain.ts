import type { Clock } from './environment'
import type { Execution } from './execution'
import type { OptionNames } from './known-options'

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
