import type { Clock } from '../base'

/** A clock that stands still until a test moves it. */
export interface FakeClock extends Clock {
  /** Moves time on, calling every timer that comes due in its order, and lets what follows from each happen first. */
  advance(ms: number): Promise<void>
  /** Lets time pass in which nothing could happen, as with a body that keeps the processor; then all that is due fires. */
  stall(ms: number): Promise<void>
  /** Sets the wall clock forward or back, as an administrator would. Durations and timers do not notice. */
  setWall(byMs: number): void
  /** Timers that are waiting. */
  pendingTimers(): number
}

interface Timer {
  readonly dueAt: number
  readonly order: number
  readonly fn: () => void
}

/**
 * A clock for tests: `createDurably({ environment: { clock } })`. `settle` resolves when everything that needs no time
 * has happened.
 */
export function createFakeClock(startMs = Date.UTC(2030, 0, 1), settle = settled): FakeClock {
  const timers = new Set<Timer>()
  let elapsed = 0
  let wallOffset = startMs
  let order = 0

  function next(until: number): Timer | null {
    let first: Timer | null = null
    for (const timer of timers) {
      if (timer.dueAt > until) continue
      if (first === null || timer.dueAt < first.dueAt || (timer.dueAt === first.dueAt && timer.order < first.order))
        first = timer
    }
    return first
  }

  return {
    now: () => wallOffset + elapsed,
    monotonic: () => elapsed,
    schedule(ms, fn) {
      order += 1
      // Whole milliseconds, as timers take: jitter must not give the clock a time that no machine shows.
      const timer = { dueAt: elapsed + Math.max(0, Math.ceil(ms)), order, fn }
      timers.add(timer)
      return () => void timers.delete(timer)
    },
    async advance(ms) {
      const until = elapsed + ms
      await settle()
      for (let timer = next(until); timer !== null; timer = next(until)) {
        timers.delete(timer)
        elapsed = Math.max(elapsed, timer.dueAt)
        timer.fn()
        await settle()
      }
      elapsed = Math.max(elapsed, until)
    },
    async stall(ms) {
      elapsed += ms
      await this.advance(0)
    },
    setWall(byMs) {
      wallOffset += byMs
    },
    pendingTimers: () => timers.size,
  }
}

/** Resolves once every promise that can settle without time passing has settled. */
export function settled(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel()
    port1.onmessage = () => {
      port1.close()
      resolve()
    }
    port2.postMessage(null)
  })
}
