import { systemClock } from '../../environment'
import { onRejection } from '../../guarded'
import type { DrainResult } from '../../worker'
import { createFakeClock, settled, type FakeClock } from '../fake-clock'
import { NeverEndsError } from './errors'

/** Many times as fast as `settled`, where the platform has it. */
const turn = systemClock.turn ?? settled

/** Time as tests of jobs need it: it stands still while something happens, and what needs no time happens by itself. */
export function createTestClock(startMs: number): FakeClock {
  const clock = createFakeClock(startMs, turn)
  return {
    ...clock,
    schedule(ms, fn) {
      if (ms > 0) return clock.schedule(ms, fn)
      let isCalledOff = false
      void turn().then(() => isCalledOff || fn())
      return () => {
        isCalledOff = true
      }
    },
  }
}

export interface TimeMachineParams {
  readonly clock: FakeClock
  readonly maxJumps: number
  /** Executes what is due; `null` when the process died meanwhile. */
  readonly drain: () => Promise<DrainResult | null>
  /** Sends what runs have come to wait for; whether there was any. */
  readonly sendSignals: () => Promise<boolean>
}

export interface Goal {
  /** Resolves when it may be reached. */
  readonly reached: Promise<unknown>
  isReached(): Promise<boolean>
  /** What keeps it from being reached, in words. */
  explain(): Promise<string>
}

/** Turns of the event loop in which nothing happens before a body counts as one that waits for time. */
const QUIET_TURNS = 10
/** With a body in flight time passes in such pieces, so that what comes due meanwhile is not late. */
const PIECE_MS = 1000

/** Executes what is due, and jumps to the next instant at which something is, one demand after another. */
export class TimeMachine {
  readonly #params: TimeMachineParams
  #line: Promise<unknown> = Promise.resolve()
  #draining: Promise<DrainResult | null> | null = null
  #happened = 0

  constructor(params: TimeMachineParams) {
    this.#params = params
  }

  noteEvent(): void {
    this.#happened += 1
  }

  /** Goes on until the goal is reached. */
  reach(goal: Goal): Promise<void> {
    return this.#inTurn(async () => {
      for (let jumps = 0; ; jumps++) {
        const drained = await this.#drainUntil(goal)
        if (drained === 'reached') return
        if (drained === null) throw await this.#neverReached(goal, 'nothing is left that could change that')
        if (jumps === this.#params.maxJumps)
          throw await this.#neverReached(goal, `the clock has jumped ${jumps} times (maxJumps)`)
        await this.#jumpTo(drained)
      }
    })
  }

  /** Lets time pass, and everything happen that comes due in it. */
  advance(ms: number): Promise<void> {
    const { clock, sendSignals } = this.#params
    return this.#inTurn(async () => {
      const until = clock.now() + ms
      for (;;) {
        const drained = await this.#drainOrQuiet()
        if (await sendSignals()) continue
        if (drained === 'quiet') {
          if (clock.now() >= until) return
          await clock.advance(Math.min(PIECE_MS, until - clock.now()))
          continue
        }
        if (drained === null) continue
        const next = drained.nextWakeAt === null ? until : Date.parse(drained.nextWakeAt)
        const isLast = next > until || drained.nextWakeAt === null
        await this.#jumpTo(isLast ? until : next)
        if (isLast) return
      }
    })
  }

  #inTurn<T>(task: () => Promise<T>): Promise<T> {
    const turn = this.#line.then(task)
    this.#line = turn.catch(() => {})
    return turn
  }

  /** The next instant at which something is due, `null` when nothing will be. */
  async #drainUntil(goal: Goal): Promise<'reached' | number | null> {
    for (;;) {
      const drained = await Promise.race([this.#drain(), goal.reached.then(() => 'reached' as const)])
      if (await goal.isReached()) return 'reached'
      if (drained === null || drained === 'reached' || (await this.#params.sendSignals())) continue
      return drained.nextWakeAt === null ? null : Date.parse(drained.nextWakeAt)
    }
  }

  async #drainOrQuiet(): Promise<DrainResult | null | 'quiet'> {
    const draining = this.#drain()
    for (let quiet = 0; quiet < QUIET_TURNS; quiet++) {
      const before = this.#happened
      const drained = await Promise.race([draining, turn().then(() => 'quiet' as const)])
      if (drained !== 'quiet') return drained
      if (this.#happened !== before) quiet = 0
    }
    return 'quiet'
  }

  /** What one demand began may be in progress when the next comes. */
  #drain(): Promise<DrainResult | null> {
    if (this.#draining === null) {
      const draining = this.#params.drain().finally(() => {
        this.#draining = null
      })
      onRejection(draining, () => {})
      this.#draining = draining
    }
    return this.#draining
  }

  async #jumpTo(instantMs: number): Promise<void> {
    const { clock } = this.#params
    await clock.stall(Math.max(0, instantMs - clock.now()))
  }

  async #neverReached(goal: Goal, why: string): Promise<NeverEndsError> {
    return new NeverEndsError(await goal.explain(), this.#params.clock.now(), why)
  }
}
