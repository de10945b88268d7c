import type { Clock } from './environment'

/** What the run waits for when nothing else is left to do, and what it had heard of when it last looked. */
export interface Suspended {
  readonly steps: readonly string[]
  readonly wakesSeen: number
}

export interface WaitParams {
  readonly name: string
  /** Until the wait ends by itself; `null` for one that only signals and children end. */
  readonly dueInMs: number | null
  /** The run's `wakes` before the wait last looked for what it waits for. */
  readonly wakesSeen: number
}

interface CallsInProgress {
  readonly size: number
  /** A function that has settled waits for nothing, whatever it has left open. */
  isAsked(name: string): boolean
}

export interface SuspensionParams {
  readonly clock: Clock
  readonly calls: CallsInProgress
  readonly wakes: number
  readonly suspend: (suspended: Suspended) => void
}

interface OpenWait extends WaitParams {
  readonly end: () => void
  readonly callOff: () => void
}

/**
 * The waits of one execution. While something else is running, a wait ends here, when it is due or the run was woken;
 * when waits are all that is left, the execution ends and the run waits in the database.
 */
export class Suspension {
  readonly #clock: Clock
  readonly #calls: CallsInProgress
  readonly #suspend: (suspended: Suspended) => void
  readonly #open = new Map<string, OpenWait>()
  #wakes: number
  #isChecking = false
  #isInterrupted = false
  #isOver = false

  /** `suspend` is called when every ctx call that has not settled is a wait. */
  constructor({ clock, calls, wakes, suspend }: SuspensionParams) {
    this.#clock = clock
    this.#calls = calls
    this.#wakes = wakes
    this.#suspend = suspend
  }

  /** How often the run was woken, as far as this execution knows. */
  get wakes(): number {
    return this.#wakes
  }

  /** Resolves when it is time to look again, or the execution was interrupted; never when it ends before. */
  wait(params: WaitParams): Promise<void> {
    const { name, dueInMs, wakesSeen } = params
    if (wakesSeen < this.#wakes || this.#isInterrupted) return Promise.resolve()
    return new Promise((resolve) => {
      const end = () => {
        this.#open.get(name)?.callOff()
        this.#open.delete(name)
        resolve()
      }
      const callOff = dueInMs === null ? () => {} : this.#clock.schedule(Math.max(0, dueInMs), end)
      this.#open.set(name, { ...params, end, callOff })
      this.check()
    })
  }

  /** An answer of the storage told how often the run was woken. */
  noteWakes(wakes: number): void {
    if (wakes <= this.#wakes) return
    this.#wakes = wakes
    for (const { end, wakesSeen } of [...this.#open.values()]) if (wakesSeen < wakes) end()
  }

  /** Called whenever a ctx call has settled or is shared. What the job does with its result gets a turn of the event loop first. */
  check(): void {
    if (this.#isChecking || this.#isOver || !this.#isQuiet()) return
    this.#isChecking = true
    this.#clock.schedule(0, () => {
      this.#isChecking = false
      if (this.#isOver || !this.#isQuiet()) return
      const asked = [...this.#open.values()].filter(({ name }) => this.#calls.isAsked(name))
      if (asked.length === 0) return
      const wakesSeen = asked.reduce((least, wait) => Math.min(least, wait.wakesSeen), this.#wakes)
      this.#suspend({ steps: asked.map(({ name }) => name), wakesSeen })
    })
  }

  /** Nothing suspends any more; who waits has to see for itself that the execution was interrupted. */
  interrupt(): void {
    this.#isOver = true
    this.#isInterrupted = true
    for (const { end } of [...this.#open.values()]) end()
  }

  end(): void {
    this.#isOver = true
    for (const { callOff } of this.#open.values()) callOff()
  }

  #isQuiet(): boolean {
    return this.#open.size > 0 && this.#open.size === this.#calls.size
  }
}
