import { onRejection, systemClock } from '../../base'
import type { DrainResult } from '../../worker'
import { createFakeClock, type FakeClock, settled } from '../fake-clock'
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
  /** Real time in which nothing happens before a body in flight counts as one that never settles. */
  readonly maxQuietMs: number
  /** Executes what is due; `null` when the process died meanwhile. */
  readonly drain: () => Promise<DrainResult | null>
  /** Where bodies are in flight, in words. */
  readonly whereQuiet: () => string
  /** Sends what runs have come to wait for, and refuses what they never will; whether there was any. */
  readonly settleSignals: () => Promise<boolean>
}

export interface Goal {
  /** Resolves when it may be reached. */
  readonly reached: Promise<unknown>
  isReached(): Promise<boolean>
  /** The instant from which it is reached, whatever happens. */
  readonly dueAt?: number | undefined
  /** What keeps it from being reached, in words. */
  explain(): Promise<string>
}

/** Turns of the event loop in which nothing happens before a body counts as one that waits for time. */
const QUIET_TURNS = 10
const QUIET_PIECES = 4
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
        if (drained === 'quiet') throw await this.#neverReached(goal, this.#quietly())
        const next = Math.min(drained ?? Number.POSITIVE_INFINITY, goal.dueAt ?? Number.POSITIVE_INFINITY)
        if (!Number.isFinite(next)) throw await this.#neverReached(goal, 'nothing is left that could change that')
        if (jumps === this.#params.maxJumps)
          throw await this.#neverReached(goal, `the clock has jumped ${jumps} times (maxJumps)`)
        await this.#jumpTo(next)
      }
    })
  }

  /** Lets time pass, and everything happen that comes due in it. */
  advance(ms: number): Promise<void> {
    const { clock, settleSignals } = this.#params
    return this.#inTurn(async () => {
      const until = clock.now() + ms
      for (;;) {
        const drained = await this.#drainOrQuiet()
        if (await settleSignals()) continue
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
  async #drainUntil(goal: Goal): Promise<'reached' | 'quiet' | number | null> {
    const reached = goal.reached.then(() => 'reached' as const)
    for (;;) {
      const quiet = this.#longQuiet()
      const drained = await Promise.race([this.#drain(), reached, quiet.come]).finally(quiet.callOff)
      if (await goal.isReached()) return 'reached'
      if (drained === 'quiet') return 'quiet'
      if (drained === null || drained === 'reached' || (await this.#params.settleSignals())) continue
      return drained.nextWakeAt === null ? null : Date.parse(drained.nextWakeAt)
    }
  }

  /** In pieces: a process that stands still uses up one of them. */
  #longQuiet() {
    const { maxQuietMs } = this.#params
    let callOff = () => {}
    const come = new Promise<'quiet'>((resolve) => {
      const look = (pieces: number, happened: number) => {
        callOff = systemClock.schedule(maxQuietMs / QUIET_PIECES, () => {
          if (this.#happened !== happened) look(QUIET_PIECES, this.#happened)
          else if (pieces === 1) resolve('quiet')
          else look(pieces - 1, happened)
        })
      }
      look(QUIET_PIECES, this.#happened)
    })
    return { come, callOff: () => callOff() }
  }

  #quietly(): string {
    const { maxQuietMs, whereQuiet } = this.#params
    return (
      `nothing has happened for ${maxQuietMs} ms of real time, ${whereQuiet()}. Give a body that never settles a stub, let time ` +
      'pass for one that waits for it by advance(), and give the test a longer maxQuietMs for one that takes its time'
    )
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
