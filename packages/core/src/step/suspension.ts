import type { Clock } from '../base'
import { LONGEST_REST_MS, restAfter } from './rests'

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
  /** How long it looked. */
  readonly lookMs?: number
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

interface Rest {
  /** The `wakes` that end it: before, some of the children that were waited for then cannot have ended. */
  wakesWanted: number
  readonly begunAt: number
  readonly endsAt: number
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
  /** Those of them that wait for something else than children. */
  readonly #others = new Set<OpenWait>()
  /** How many children each wait waits for, also while it looks again. */
  readonly #children = new Map<string, number>()
  #childrenAwaited = 0
  /** Many children were looked at a moment ago. What else wakes the run ends the other waits meanwhile. */
  #rest: Rest | null = null
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
    if (this.#isInterrupted) return Promise.resolve()
    if (params.awaited !== undefined) this.#restIfMany(params.name, params.awaited.ids.length, params.lookMs ?? 0)
    const isHeld = this.#rest !== null && params.awaited !== undefined
    if (params.wakesSeen < this.#wakes && !isHeld) return Promise.resolve()
    return new Promise((resolve) => {
      this.#enter(params, resolve)
      this.check()
    })
  }

  #enter(params: WaitParams, resolve: () => void): void {
    const { name, dueInMs, awaited } = params
    const end = () => {
      wait.callOff()
      this.#open.delete(name)
      this.#others.delete(wait)
      resolve()
    }
    const callOff = dueInMs === null ? () => {} : this.#clock.schedule(Math.max(0, dueInMs), end)
    const wait: OpenWait = { ...params, end, callOff }
    this.#open.set(name, wait)
    if (awaited === undefined) this.#others.add(wait)
  }

  /** An answer of the storage told how often the run was woken. */
  noteWakes(wakes: number): void {
    if (wakes <= this.#wakes) return
    this.#wakes = wakes
    if (this.#isRestOver()) this.#endRest()
    this.#wake(this.#rest === null ? this.#open.values() : this.#others)
  }

  /** That wait has what it waited for. */
  found(name: string): void {
    this.#childrenAwaited -= this.#children.get(name) ?? 0
    this.#children.delete(name)
  }

  #wake(waits: Iterable<OpenWait>): void {
    for (const { end, wakesSeen } of [...waits]) if (wakesSeen < this.#wakes) end()
  }

  /** A look at few of them may have ended while the look at all went on, whose cost counts. */
  #restIfMany(name: string, children: number, lookMs: number): void {
    this.found(name)
    this.#children.set(name, children)
    this.#childrenAwaited += children
    const restMs = restAfter(lookMs, this.#childrenAwaited)
    if (restMs === 0 || this.#isOver) return
    const now = this.#clock.monotonic()
    const { begunAt, endsAt, wakesWanted } = this.#rest ?? { begunAt: now, endsAt: now, wakesWanted: 0 }
    // Not a new timer for each wait of one look.
    if (restMs <= 2 * (endsAt - now)) return
    const newEnd = Math.min(now + restMs, begunAt + LONGEST_REST_MS)
    if (newEnd <= endsAt) return
    this.#rest?.callOff()
    const callOff = this.#clock.schedule(newEnd - now, () => {
      this.#endRest()
      this.#wake(this.#open.values())
    })
    this.#rest = { wakesWanted, begunAt, endsAt: newEnd, callOff }
  }

  /** Before its time, when all children could have ended: more may be waited for than when that was last reckoned. */
  #isRestOver(): boolean {
    const rest = this.#rest
    if (rest === null || this.#wakes < rest.wakesWanted) return false
    rest.wakesWanted = wakesWhenAllEnded(this.#open.values())
    return this.#wakes >= rest.wakesWanted
  }

  #endRest(): void {
    this.#rest?.callOff()
    this.#rest = null
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
    this.#endRest()
    for (const { end } of [...this.#open.values()]) end()
  }

  end(): void {
    this.#isOver = true
    this.#endRest()
    for (const { callOff } of this.#open.values()) callOff()
  }

  #isQuiet(): boolean {
    return this.#open.size > 0 && this.#open.size === this.#calls.size
  }
}

function suspendedBy(asked: readonly OpenWait[], wakes: number): Suspended {
  const steps = asked.map(({ name }) => name)
  const wakesSeen = asked.reduce((least, wait) => Math.min(least, wait.wakesSeen), wakes)
  const children = new Set(asked.flatMap(({ awaited = NOBODY }) => awaited.ids)).size
  return { steps, wakesSeen, wakesWanted: Math.max(wakesSeen, wakesWhenAllEnded(asked)), children }
}

/** Each child wakes the run once when it ends: with fewer `wakes` than that, one of them at least has not ended. */
function wakesWhenAllEnded(waits: Iterable<OpenWait>): number {
  const own = new Set<string>()
  const singles = new Map<string, number>()
  let wanted = 0
  for (const { awaited, wakesSeen } of waits) {
    // What time alone ends has seen all wakes there will ever be.
    if (awaited === undefined) continue
    const { ids, open, isOwn } = awaited
    wanted = Math.max(wanted, wakesSeen + open)
    if (isOwn) for (const id of ids) own.add(id)
    const [single] = ids
    if (ids.length === 1 && single !== undefined) singles.set(single, Math.max(wakesSeen, singles.get(single) ?? 0))
  }
  // So many of them were open when the run had been woken so often.
  const lastSeen = [...singles.values()].sort((a, b) => b - a)
  for (const [index, seen] of lastSeen.entries()) wanted = Math.max(wanted, seen + index + 1)
  return Math.max(wanted, own.size)
}

const NOBODY: Awaited = { ids: [], open: 0, isOwn: false }
