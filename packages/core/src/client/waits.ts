import { ask, type Engine, reportTrouble } from '../engine'
import { isEnded, NotFoundError, type OptionNames, refuseBadDuration, TimeoutError } from '../base'
import type { RunRecord } from '../port'

/** How long to wait for the end of a run. */
export interface WaitOptions {
  /** Milliseconds; then `TimeoutError`, and the run goes on. */
  readonly timeout?: number | undefined
  /** Gives the waiting up; the run goes on. */
  readonly signal?: AbortSignal | undefined
}

export const WAIT_OPTIONS: OptionNames<WaitOptions> = { timeout: true, signal: true }

/** Before anything that the wait is for. */
export function refuseBadWait({ timeout, signal }: WaitOptions): void {
  refuseBadDuration('timeout', timeout)
  signal?.throwIfAborted()
}

interface Waiter {
  readonly resolve: (run: RunRecord) => void
  readonly reject: (error: unknown) => void
}

/** One poll for everybody who waits: runs that end in this process are looked at as soon as they do. */
export class Waits {
  readonly #engine: Engine
  readonly #waiting = new Map<string, Set<Waiter>>()
  #callOffPoll: (() => void) | null = null
  #closedBy: Error | null = null

  constructor(engine: Engine) {
    this.#engine = engine
  }

  get isIdle(): boolean {
    return this.#waiting.size === 0
  }

  /** The run once it has ended, wherever that happens. */
  async untilEnded(runId: string, options: WaitOptions): Promise<RunRecord> {
    if (this.#closedBy !== null) throw this.#closedBy
    refuseBadWait(options)
    const { timeout, signal } = options
    const wait = this.#enter(runId)
    const onAbort = () => wait.reject(signal?.reason)
    const onTimeout = () => wait.reject(new TimeoutError(`Run ${runId} did not end within ${timeout} ms. It goes on.`))
    signal?.addEventListener('abort', onAbort, { once: true })
    const callOff = timeout === undefined ? () => {} : this.#engine.environment.clock.schedule(timeout, onTimeout)
    try {
      return await wait.ended
    } finally {
      wait.leave()
      callOff()
      signal?.removeEventListener('abort', onAbort)
    }
  }

  /** Somebody in this process knows that the run changed. */
  look(runId: string): void {
    if (this.isFor(runId)) this.#engine.bodyScope.outside(() => void this.#check([runId]))
  }

  isFor(runId: string): boolean {
    return this.#waiting.has(runId)
  }

  close(error: Error): void {
    this.#closedBy = error
    for (const waiters of this.#waiting.values()) for (const waiter of waiters) waiter.reject(error)
  }

  #enter(runId: string) {
    const waiters = this.#waiting.get(runId) ?? new Set()
    let reject: Waiter['reject'] = () => {}
    const ended = new Promise<RunRecord>((resolve, rejectWith) => {
      reject = rejectWith
      this.#waiting.set(runId, waiters.add({ resolve, reject }))
    })
    const leave = () => {
      for (const waiter of waiters) if (waiter.reject === reject) waiters.delete(waiter)
      if (waiters.size === 0 && this.#waiting.get(runId) === waiters) this.#waiting.delete(runId)
      if (this.#waiting.size === 0) this.#stopPolling()
    }
    void this.#check([runId])
    this.#poll()
    return { ended, reject, leave }
  }

  async #check(runIds: readonly string[]): Promise<void> {
    try {
      const runs = await ask(this.#engine, (storage) => storage.getRuns({ ids: runIds }))
      const found = new Map(runs.map((run) => [run.id, run]))
      for (const runId of runIds) this.#answer(runId, found.get(runId))
    } catch (error) {
      reportTrouble(this.#engine, error, 'wait for runs')
    }
  }

  #answer(runId: string, run: RunRecord | undefined): void {
    if (run !== undefined && !isEnded(run.status)) return
    const waiters = this.#waiting.get(runId) ?? []
    this.#waiting.delete(runId)
    for (const waiter of waiters) {
      if (run === undefined) waiter.reject(NotFoundError.run(runId))
      else waiter.resolve(run)
    }
  }

  #poll(): void {
    if (this.#callOffPoll !== null || this.#waiting.size === 0) return
    const { options, environment } = this.#engine
    this.#callOffPoll = environment.clock.schedule(options.pollingIntervalMs, () => {
      this.#callOffPoll = null
      void this.#check([...this.#waiting.keys()]).then(() => this.#poll())
    })
  }

  /** A timer nobody needs would keep the process. */
  #stopPolling(): void {
    this.#callOffPoll?.()
    this.#callOffPoll = null
  }
}
