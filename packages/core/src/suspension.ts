import type { Clock } from './environment'

/** What the run waits for when nothing else is left to do, and what it had heard of when it last looked. */
export interface Suspended {
  readonly steps: readonly string[]
  readonly wakesSeen: number
  /** The `wakes` that the run has when every child it waits for has ended, or fewer. */
  readonly wakesWanted: number
  /** How many children that is about. */
  readonly children: number
}

/** Children that a wait waits for. */
export interface Awaited {
  readonly ids: readonly string[]
  /** So many of them have not ended, or more. */
  readonly open: number
  /** None of them had ended before it was this run's. */
  readonly isOwn: boolean
}

export interface WaitParams {
  readonly name: string
  /** Until the wait ends by itself; `null` for one that only signals and children end. */
  readonly dueInMs: number | null
  /** The run's `wakes` before the wait last looked for what it waits for. */
  readonly wakesSeen: number
  readonly awaited?: Awaited | undefined
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
      if (asked.length > 0) this.#suspend(suspendedBy(asked, this.#wakes))
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

function suspendedBy(asked: readonly OpenWait[], wakes: number): Suspended {
  let wakesSeen = wakes
  let openOfOne = 0
  const single = new Set<string>()
  const own = new Set<string>()
  const all = new Set<string>()
  for (const wait of asked) {
    wakesSeen = Math.min(wakesSeen, wait.wakesSeen)
    const { ids, open, isOwn } = wait.awaited ?? NOBODY
    for (const id of ids) {
      all.add(id)
      if (isOwn) own.add(id)
      if (ids.length === 1) single.add(id)
    }
    openOfOne = Math.max(openOfOne, open)
  }
  // Each of its own that has ended has woken the run once, so that no more of them than that can have ended.
  const stillOpen = Math.max(single.size, openOfOne, own.size - wakesSeen)
  const steps = asked.map(({ name }) => name)
  return { steps, wakesSeen, wakesWanted: wakesSeen + stillOpen, children: all.size }
}

const NOBODY: Awaited = { ids: [], open: 0, isOwn: false }
