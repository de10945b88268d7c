import { StorageError } from '../../base'
import type { Storage } from '../../port'
import {
  type Coverage,
  type Fault,
  IDLE_TROUBLE_CHANCE,
  noteHits,
  type SimulatedTransition,
  TROUBLE_CHANCE,
} from './faults'
import type { Model } from './model'
import { observe } from './observer'
import type { Plan } from './plan'
import type { SimProcess } from './sim-process'
import type { Trace } from './trace'
import { Violation } from './violation'
import type { World } from './world'

/** One call of the storage on its way. */
export interface Call<T> {
  readonly name: string
  /** A worker's own call, which does not wait for its answer for ever. */
  readonly isWorkers?: boolean
  /** Asked on arrival: which transitions the call would make now. */
  readonly stakes: () => readonly SimulatedTransition[]
  /** How likely trouble is, whatever is at stake. */
  readonly trouble?: number
  readonly perform: () => Promise<T>
  /** Compares the answer with the model, which moves on. */
  readonly check?: (answer: T) => void
  /** Whether anything may be different now; without it, everything is compared. */
  readonly mayChange?: (answer: T) => boolean
  readonly mayRefuse?: () => boolean
  /** The process hears the answer. */
  readonly delivered?: (answer: T) => void
  /** The process hears that there is none. */
  readonly failed?: () => void
}

/** What a fault does to processes. */
export interface Mischief {
  kill(process: SimProcess): void
  pause(process: SimProcess, ms: number): void
  jumpClock(process: SimProcess): void
  wakeAll(): void
}

export interface WireParams {
  readonly world: World
  readonly plan: Plan
  readonly inner: Storage
  readonly model: Model
  readonly coverage: Coverage
  /** Asked late: processes need a wire first. */
  readonly mischief: () => Mischief
  readonly trace: Trace
}

interface Letter<T> {
  readonly process: SimProcess
  readonly call: Call<T>
  readonly resolve: (answer: T) => void
  readonly reject: (error: unknown) => void
  /** Answered, or not waited for any longer. */
  isOver: boolean
}

type Outcome<T> = { readonly answer: T } | { readonly error: unknown }

/** Between the engines and the storage. What arrives is executed at once and checked; everything else may go wrong. */
export class Wire {
  readonly #params: WireParams
  #isRough = true
  #calls = 0

  constructor(params: WireParams) {
    this.#params = params
  }

  get calls(): number {
    return this.#calls
  }

  /** From now on nothing goes wrong any more. */
  calm(): void {
    this.#isRough = false
  }

  send<T>(process: SimProcess, call: Call<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const letter = { process, call, resolve, reject, isOver: false }
      if (call.isWorkers === true) this.#giveUpLater(letter)
      this.#params.world.schedule(this.#latency(), null, () => this.#arrive(letter))
    })
  }

  #giveUpLater<T>(letter: Letter<T>): void {
    const { world, plan } = this.#params
    // A moment before the worker does: what comes later gets lost, and the worker hears nothing.
    world.scheduleFirst(plan.leaseMs / 3 - 5, letter.process, () => {
      if (letter.isOver) return
      letter.isOver = true
      letter.call.failed?.()
    })
  }

  /** Executes and checks a call that no engine made, now. */
  async perform<T>(call: Call<T>): Promise<void> {
    await this.#perform(call, null)
  }

  async #perform<T>(call: Call<T>, process: SimProcess | null): Promise<Outcome<T>> {
    const { inner, model, trace } = this.#params
    this.#calls += 1
    let outcome: Outcome<T>
    try {
      outcome = { answer: await call.perform() }
    } catch (error) {
      if (call.mayRefuse?.() !== true) throw new Violation(`${call.name} was refused by the storage: ${String(error)}`)
      outcome = { error }
    }
    trace(process, call.name, outcome)
    if ('answer' in outcome) call.check?.(outcome.answer)
    model.look()
    if ('error' in outcome || call.mayChange?.(outcome.answer) !== false) await observe(inner, model)
    return outcome
  }

  async #arrive<T>(letter: Letter<T>): Promise<void> {
    const { world, coverage, trace } = this.#params
    const { process, call } = letter
    const isOrphaned = process.state === 'gone'
    // What a dead process sent may still be under way, or not.
    if (isOrphaned && world.random.chance(0.5)) return
    const stakes = call.stakes()
    const fault = isOrphaned ? null : this.#chooseFault(stakes, call.trouble)
    if (fault === null) return this.#performAndAnswer(letter)
    noteHits(coverage, fault, stakes)
    trace(process, fault)
    await this.#suffer(fault, letter)
  }

  #chooseFault(stakes: readonly SimulatedTransition[], least = IDLE_TROUBLE_CHANCE): Fault | null {
    const { plan, world } = this.#params
    if (!this.#isRough) return null
    const chance = stakes.reduce((most, stake) => Math.max(most, TROUBLE_CHANCE[stake]), least)
    return world.random.chance(chance * plan.roughness) ? world.random.weighted(plan.faults) : null
  }

  async #suffer<T>(fault: Fault, letter: Letter<T>): Promise<void> {
    const { world, plan } = this.#params
    const { random } = world
    const { process } = letter
    const mischief = this.#params.mischief()
    const pastLeaseMs = plan.leaseMs * (1 + 1.5 * random.next())
    switch (fault) {
      case 'throwBefore':
        return this.#answer(letter, { error: trouble(random.int(3)) })
      case 'throwAfter':
        if (random.chance(0.25)) this.#later(random.int(plan.leaseMs), () => this.#perform(letter.call, process))
        else await this.#perform(letter.call, process)
        return this.#answer(letter, { error: trouble(random.int(2)) })
      case 'delayPastLease':
        if (random.chance(0.5)) return this.#later(pastLeaseMs, () => this.#performAndAnswer(letter))
        return this.#performAndAnswer(letter, pastLeaseMs)
      case 'workerDies':
        if (random.chance(0.5)) await this.#perform(letter.call, process)
        return mischief.kill(process)
      case 'workerPauses':
        mischief.pause(process, pastLeaseMs)
        if (random.chance(0.3)) return this.#later(pastLeaseMs, () => this.#performAndAnswer(letter))
        return this.#performAndAnswer(letter)
      case 'clockJump':
        mischief.jumpClock(process)
        return this.#performAndAnswer(letter)
      case 'duplicateWakeUp':
        mischief.wakeAll()
        await this.#performAndAnswer(letter)
        return mischief.wakeAll()
    }
  }

  async #performAndAnswer<T>(letter: Letter<T>, delayMs?: number): Promise<void> {
    this.#answer(letter, await this.#perform(letter.call, letter.process), delayMs)
  }

  #answer<T>(letter: Letter<T>, outcome: Outcome<T>, delayMs = this.#latency()): void {
    const { call, resolve, reject } = letter
    this.#params.world.schedule(delayMs, letter.process, () => {
      if (letter.isOver) return
      letter.isOver = true
      if ('error' in outcome) {
        call.failed?.()
        return reject(outcome.error)
      }
      call.delivered?.(outcome.answer)
      resolve(outcome.answer)
    })
  }

  #later(ms: number, task: () => Promise<unknown>): void {
    this.#params.world.schedule(ms, null, async () => {
      await task()
    })
  }

  #latency(): number {
    const { random } = this.#params.world
    return random.chance(0.1) ? random.int(120) : random.int(4)
  }
}

/** 0 and 1 leave open whether the call was executed; 2 says that it was not. */
function trouble(kind: number): Error {
  if (kind === 0) return new StorageError('STORAGE_UNAVAILABLE', 'the connection was lost')
  return kind === 1 ? new Error('socket hang up') : new StorageError('STORAGE_BUSY', 'the database is busy')
}
