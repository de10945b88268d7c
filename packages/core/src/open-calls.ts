import type { CallSite } from './call-site'
import { turnOf, type Clock } from './environment'
import type { Interruption } from './interruption'
import type { StepKind } from './storage'

/** One pass through the job function: its names in their order. A plugin may ask for another. */
export interface Pass {
  readonly names: Map<string, CallSite>
  isRunning: boolean
}

/** A call as the job made it. */
export interface MadeCall {
  readonly name: string
  readonly pass: Pass
}

export interface NewCall<T> extends MadeCall {
  readonly index: number
  readonly kind: StepKind
  readonly work: Promise<T>
}

/** A call of `ctx` that has not settled. */
export interface OpenCall extends Omit<NewCall<unknown>, 'pass'> {
  readonly key: string | symbol
  /** What the job has. */
  readonly call: Promise<unknown>
  readonly reject: (error: unknown) => void
  /** All that asked for it. A plugin may have several going on at once. */
  readonly passes: Pass[]
  isDone: boolean
}

interface Listeners {
  /** A call has settled. */
  onChange(): void
  /** Somebody called when the execution was over. */
  onLate(name: string): void
}

const WAITS: ReadonlySet<StepKind> = new Set(['sleep', 'signal', 'child', 'waitAll'])

/** A wait that is still open when the job returns is given up; a step is not. */
export function isWait({ kind }: Pick<OpenCall, 'kind'>): boolean {
  return WAITS.has(kind)
}

/** A function that has settled is not told any more. */
function isHeard({ passes }: Pick<OpenCall, 'passes'>): boolean {
  return passes.some(({ isRunning }) => isRunning)
}

/** The calls of `ctx` of one execution, in their order, shared between its passes. */
export class OpenCalls {
  readonly #clock: Clock
  readonly #interruption: Interruption
  readonly #listeners: Listeners
  readonly #open = new Map<string | symbol, OpenCall>()
  #isRejecting = false
  #hasRefused = false
  #isOver = false

  constructor(clock: Clock, interruption: Interruption, listeners: Listeners) {
    this.#clock = clock
    this.#interruption = interruption
    this.#listeners = listeners
    interruption.onInterrupt(() => this.#reject())
  }

  get size(): number {
    return this.#open.size
  }

  /** Whether a function that is still running has asked for it. */
  isAsked(name: string): boolean {
    const open = this.#open.get(name)
    return open !== undefined && isHeard(open)
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** The call of that name that an earlier pass has left open, which is now this pass's as well. */
  share(name: string, pass: Pass): OpenCall | undefined {
    const open = this.#open.get(name)
    if (open === undefined) return undefined
    open.passes.push(pass)
    return open
  }

  open<T>(call: NewCall<T>): Promise<T> {
    return this.#add(call.name, call)
  }

  /**
   * A call that must not be, and may come again under the same name for ever: a job that catches it in a loop must not
   * hold up everybody else.
   */
  refuse(error: unknown, { name, pass }: MadeCall): Promise<never> {
    if (this.#interruption.reason() !== null) return this.openTooLate({ name, pass })
    if (!this.#hasRefused) {
      this.#hasRefused = true
      return handled(Promise.reject(error))
    }
    const work = turnOf(this.#clock).then(() => Promise.reject(error))
    return this.#add(Symbol(), { name, pass, index: -1, kind: 'sleep', work })
  }

  #add<T>(key: string | symbol, { name, index, kind, pass, work }: NewCall<T>): Promise<T> {
    let resolve: (value: T) => void = () => {}
    let reject: (error: unknown) => void = () => {}
    const call = handled(
      new Promise<T>((resolveWith, rejectWith) => {
        resolve = resolveWith
        reject = rejectWith
      }),
    )
    const open: OpenCall = { key, name, index, kind, passes: [pass], work, call, reject, isDone: false }
    this.#open.set(key, open)
    work.then(
      (value) => this.#settle(open, () => resolve(value)),
      (error: unknown) => this.#settle(open, () => reject(error)),
    )
    // It may have begun with a wait, before it could be counted among the calls.
    this.#listeners.onChange()
    return call
  }

  /** What it comes to is recorded also when the execution was interrupted meanwhile. The job does not see it then. */
  #settle(open: OpenCall, tell: () => void): void {
    open.isDone = true
    if (this.#interruption.reason() !== null) return
    this.#open.delete(open.key)
    tell()
    this.#listeners.onChange()
  }

  /** A call that comes when the execution is interrupted: it rejects in its turn, or never settles. */
  openTooLate({ name, pass }: MadeCall): Promise<never> {
    if (this.#isOver) this.#listeners.onLate(name)
    if (!this.#mayReject()) return new Promise(() => {})
    const call = this.#add<never>(Symbol(), { name, pass, index: -1, kind: 'sleep', work: new Promise(() => {}) })
    this.#reject()
    return call
  }

  /** Steps that are going on. */
  steps(): readonly OpenCall[] {
    return [...this.#open.values()].filter((open) => !open.isDone && !isWait(open))
  }

  async stepsDone(): Promise<void> {
    await Promise.allSettled(this.steps().map(({ work }) => work))
  }

  /** Nothing settles any more. */
  close(): void {
    this.#isOver = true
  }

  /** Another process goes on where this one stops: a job must not take its worker's shutdown for an error. */
  #mayReject(): boolean {
    const reason = this.#interruption.reason()
    return !this.#isOver && reason !== 'shutdown' && reason !== 'ended'
  }

  #reject(): void {
    if (!this.#isRejecting && this.#mayReject()) void this.#rejectInTurn()
  }

  /**
   * One call in a turn of the event loop, in the order in which they were called. A job that goes on calling in a loop
   * does not hold up the timers, the end of its grace among them; and one that awaits two calls one after the other ends
   * with the first, before the second could reject unheard.
   */
  async #rejectInTurn(): Promise<void> {
    this.#isRejecting = true
    // Those that come meanwhile have their turn at the end.
    for (const [key, open] of this.#open) {
      if (isHeard(open) && !isWait(open)) await settledAnyhow(open.work)
      if (this.#isOver) break
      // A function that has settled is not told any more.
      if (!isHeard(open)) continue
      this.#open.delete(key)
      open.reject(this.#interruption.cause())
      await turnOf(this.#clock)
    }
    this.#isRejecting = false
  }
}

/** What nobody awaits must not end the process when it fails; somebody else is told. */
export function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {})
  return promise
}

async function settledAnyhow(work: Promise<unknown>): Promise<void> {
  try {
    await work
  } catch {}
}
