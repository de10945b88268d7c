import type { Clock } from './environment'

interface Waiting {
  readonly ms: number
  readonly giveUp: () => void
  callOff: () => void
}

/**
 * Gives up on an answer after so many milliseconds, unless it is called off before. A storage in this process answers
 * before the event loop has turned, many times in one turn: only what is still open then gets a timer of its own.
 */
export function createPatience(clock: Clock): (ms: number, giveUp: () => void) => () => void {
  const open = new Set<Waiting>()
  let isTurning = false
  function startTimers(): void {
    isTurning = false
    for (const waiting of open) waiting.callOff = clock.schedule(waiting.ms, waiting.giveUp)
    open.clear()
  }
  return (ms, giveUp) => {
    if (clock.turn === undefined) return clock.schedule(ms, giveUp)
    if (!isTurning) void clock.turn().then(startTimers)
    isTurning = true
    const waiting: Waiting = { ms, giveUp, callOff: () => {} }
    open.add(waiting)
    return () => {
      open.delete(waiting)
      waiting.callOff()
    }
  }
}
