import { type Clock, goRounds, StorageError } from '../base'
import type { Durably } from '../instance'
import type { Keep } from './options'
import { ENDED_RUNS, ENDED_TASK_STATES } from './task'
import type { TaskEvents } from './task-events'

const SECOND_MS = 1000
const MINUTE_MS = 60_000

/** So many tasks of a state may end before those beyond its count go. */
const BATCH = 1000

export interface RetentionParams {
  readonly durably: Durably
  readonly events: TaskEvents
  readonly clock: Clock
  readonly keep: Keep
  readonly jobNames: () => readonly string[]
}

/** Removes ended tasks that `keep` does not keep: every so many that end, and while the queue is started by time. */
export class Retention {
  readonly #params: RetentionParams
  readonly #intervalMs: number
  #endedSince = 0
  #sweeping: Promise<void> | null = null
  #stopRounds: (() => Promise<void>) | null = null

  constructor(params: RetentionParams) {
    const { keep, events } = params
    this.#params = params
    this.#intervalMs = Math.min(MINUTE_MS, Math.max(SECOND_MS, Math.min(keep.succeeded.age, keep.dead.age) / 10))
    events.on('dead', () => this.noteEnd())
  }

  start(): void {
    this.#stopRounds ??= goRounds(this.#params.clock, this.#intervalMs, async () => {
      await this.sweep()
      return this.#intervalMs
    })
  }

  /** A sweep in progress goes on to its end. */
  stop(): void {
    void this.#stopRounds?.()
    this.#stopRounds = null
  }

  /** Trouble is reported, and the next one tries again. */
  sweep(): Promise<void> {
    this.#sweeping ??= this.#sweepOnce().finally(() => {
      this.#sweeping = null
    })
    return this.#sweeping
  }

  /** A task succeeded or died. */
  noteEnd(): void {
    this.#endedSince += 1
    if (this.#endedSince >= BATCH) void this.sweep()
  }

  async #sweepOnce(): Promise<void> {
    const { durably, keep } = this.#params
    const jobName = this.#params.jobNames()
    this.#endedSince = 0
    try {
      for (const state of ENDED_TASK_STATES) {
        const { age, count } = keep[state]
        const ended = { status: ENDED_RUNS[state], jobName }
        if (Number.isFinite(age)) await durably.purge({ ...ended, olderThan: age })
        if (Number.isFinite(count)) await durably.purge({ ...ended, keepNewest: count })
      }
    } catch (error) {
      // By the application, which need not wait for this.
      if (error instanceof StorageError && error.code === 'STORAGE_CLOSED') return
      durably.reportError(error, 'retention')
    }
  }
}
