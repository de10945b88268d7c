import type { CallSite } from './call-site'
import { type Clock, handled, turnOf } from '../base'
import { GRACE_MS, type Interruption } from './interruption'
import type { StepKind } from '../port'

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

/** How a call ends: one of them is called, once. */
export interface Settle<T = unknown> {
  succeed(value: T): void
  fail(error: unknown): void
}

export interface NewCall<T> extends MadeCall {
  readonly index: number
  readonly kind: StepKind
  /** Begins the call. It may settle before this returns, and throws nothing. */
  readonly begin: (settle: Settle<T>) => void
}

interface Rejectable {
  reject(error: unknown): void
  /** All that asked for it. A plugin may have several going on at once. */
  readonly passes: Pass[]
}

/** A call of `ctx` that has not settled. */
export class OpenCall implements Rejectable, Settle {
  readonly key: string | symbol
  readonly name: string
  readonly index: number
  readonly kind: StepKind
  readonly passes: Pass[]
  /** What the job has. */
  readonly call: Promise<unknown>
  isDone = false
  readonly #owner: OpenCalls
  #resolve: (value: unknown) => void = () => {}
  #reject: (error: unknown) => void = () => {}
  /** What it came to, which the job may not have heard of yet. */
  #result: { readonly value: unknown } | { readonly error: unknown } | null = null
  /** Who else waits for that. */
  #waiting: Settle[] | null = null

  constructor(owner: OpenCalls, key: string | symbol, { name, index, kind, pass }: Omit<NewCall<unknown>, 'begin'>) {
    this.#owner = owner
    this.key = key
    this.name = name
    this.index = index
    this.kind = kind
    this.passes = [pass]
    this.call = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  succeed(value: unknown): void {
    this.#result = { value }
    for (const settle of this.#waiting ?? []) settle.succeed(value)
    this.#owner.settle(this)
  }

  fail(error: unknown): void {
    this.#result = { error }
    for (const settle of this.#waiting ?? []) settle.fail(error)
    this.#owner.settleInTurn(this)
  }

  /** To the job. */
  tell(): void {
    if (this.#result === null) return
    if ('error' in this.#result) this.reject(this.#result.error)
    else this.#resolve(this.#result.value)
  }

  reject(error: unknown): void {
    void handled(this.call)
    this.#reject(error)
  }

  /** What it comes to, whether the job hears of it or not. */
  result(): Promise<unknown> {
    return new Promise((succeed, fail) => {
      const result = this.#result
      this.#waiting ??= []
      if (result === null) this.#waiting.push({ succeed, fail })
      else if ('error' in result) fail(result.error)
      else succeed(result.value)
    })
  }
}

/** For bodies that heed their signal, so that calls reject in their order. */
const PATIENCE_MS = GRACE_MS / 10
/** On a clock that stands still, so many calls may fail before it has to move. */
const FAILURES_AT_ONCE = 100

interface Listeners {
  /** A call has settled. */
  onChange(): void
  /** Somebody called when the execution was over. */
  onLate(name: string): void
}

const WAITS: ReadonlySet<StepKind> = new Set(['sleep', 'signal', 'child', 'waitAll'])

/** A wait that is still open when the job returns is given up; a step is not. */
function isWait({ kind }: Pick<OpenCall, 'kind'>): boolean {
  return WAITS.has(kind)
}

/** A function that has settled is not told any more. */
function isHeard({ passes }: Pick<Rejectable, 'passes'>): boolean {
  return passes.some(({ isRunning }) => isRunning)
}

/** The calls of `ctx` of one execution, in their order, shared between its passes. */
export class OpenCalls {
  readonly #clock: Clock
  readonly #interruption: Interruption
  readonly #listeners: Listeners
  readonly #open = new Map<string | symbol, OpenCall>()
  /** Calls that the job made when the execution was interrupted. */
  readonly #late: Rejectable[] = []
  #callOff: () => void = () => {}
  #isRejecting = false
  #isPatient = true
  #failures = 0
  #isOver = false

  constructor(clock: Clock, interruption: Interruption, listeners: Listeners) {
    this.#clock = clock
    this.#interruption = interruption
    this.#listeners = listeners
    interruption.onInterrupt(() => this.#interrupt())
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

  /** A call that must not be, and may come again under the same name. */
  refuse(error: unknown, { name, pass }: MadeCall): Promise<never> {
    if (this.#interruption.reason() !== null) return this.openTooLate({ name, pass })
    return this.#add(Symbol(), { name, pass, index: -1, kind: 'sleep', begin: (open) => open.fail(error) })
  }

  #add<T>(key: string | symbol, call: NewCall<T>): Promise<T> {
    const open = new OpenCall(this, key, call)
    this.#open.set(key, open)
    call.begin(open)
    // It may have begun with a wait, before it could be counted among the calls.
    this.#listeners.onChange()
    return open.call as Promise<T>
  }

  /** For `OpenCall`. A job that goes on calling in a loop, whatever it catches, does not hold up the timers and all others. */
  settleInTurn(open: OpenCall): void {
    this.#failures += 1
    const isTooMuch = this.#clock.turn !== undefined || this.#failures > FAILURES_AT_ONCE
    if (isTooMuch) void turnOf(this.#clock).then(() => this.settle(open))
    else this.settle(open)
  }

  /**
   * For `OpenCall`. What it comes to is recorded also when the execution was interrupted meanwhile. The job does not see it
   * then.
   */
  settle(open: OpenCall): void {
    open.isDone = true
    if (this.#interruption.reason() !== null) {
      this.#reject()
      return
    }
    this.#open.delete(open.key)
    open.tell()
    this.#listeners.onChange()
  }

  /** A call that comes when the execution is interrupted: it rejects in its turn, or never settles. */
  openTooLate({ name, pass }: MadeCall): Promise<never> {
    if (this.#isOver) this.#listeners.onLate(name)
    if (!this.#mayReject()) return new Promise(() => {})
    return handled(
      new Promise((_resolve, reject) => {
        this.#late.push({ passes: [pass], reject })
        this.#reject()
      }),
    )
  }

  /** Steps that are going on. */
  steps(): readonly OpenCall[] {
    return [...this.#open.values()].filter((open) => !open.isDone && !isWait(open))
  }

  async stepsDone(): Promise<void> {
    await Promise.allSettled(this.steps().map((open) => open.result()))
  }

  /** Nothing settles any more. */
  close(): void {
    this.#isOver = true
    this.#callOff()
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
   * One call in a turn of the event loop: a job that goes on calling in a loop does not hold up the timers, the end of its
   * grace among them.
   */
  async #rejectInTurn(): Promise<void> {
    this.#isRejecting = true
    for (let call = this.#next(); call !== undefined; call = this.#next()) {
      call.reject(this.#interruption.cause())
      await turnOf(this.#clock)
    }
    this.#isRejecting = false
  }

  #next(): Rejectable | undefined {
    return this.#mayReject() ? (this.#nextOpen() ?? this.#nextLate()) : undefined
  }

  #nextLate(): Rejectable | undefined {
    for (let call = this.#late.shift(); call !== undefined; call = this.#late.shift()) if (isHeard(call)) return call
    return undefined
  }

  /** In their order; a body that does not let go soon is passed over, for it may wait for those behind it. */
  #nextOpen(): OpenCall | undefined {
    for (const call of this.#open.values()) {
      if (!isHeard(call)) continue
      if (call.isDone || isWait(call)) {
        this.#open.delete(call.key)
        return call
      }
      if (this.#isPatient) return undefined
    }
    return undefined
  }

  #interrupt(): void {
    if (!this.#mayReject()) return
    this.#reject()
    if (this.#open.size === 0) return
    this.#callOff = this.#clock.schedule(PATIENCE_MS, () => {
      this.#isPatient = false
      this.#reject()
    })
  }
}
