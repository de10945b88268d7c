import type { Instant } from '../port'

/** Later instants would need five digits for the year, and text order would no longer be time order. */
const LAST_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

/** The storage's own time, as the fixed-width text that records carry. */
export interface Clock {
  /** Looks at the time. Everything in one operation has the instant of the last look, as in one statement of SQL. */
  look(): void
  now(): Instant
  /** The instant this many milliseconds from now. */
  in(ms: number): Instant
  /** Milliseconds until the instant, 0 when it has come. */
  until(instant: Instant): number
}

/** Goes on from the last instant when the clock of the machine is set back: nothing waits until that is made up for. */
export function createClock(readNow: () => number): Clock {
  let nowMs = Math.floor(readNow())
  let setBackMs = 0
  const textOfNow = rememberLast(toInstant)
  const textOfLater = rememberLast(toInstant)
  return {
    look: () => {
      const readMs = Math.floor(readNow())
      setBackMs = Math.max(setBackMs, nowMs - readMs)
      nowMs = readMs + setBackMs
    },
    now: () => textOfNow(nowMs),
    in: (ms) => (ms === 0 ? textOfNow(nowMs) : textOfLater(nowMs + Math.floor(ms))),
    until: (instant) => Math.max(0, Date.parse(instant) - nowMs),
  }
}

function toInstant(ms: number): Instant {
  return new Date(Math.max(0, Math.min(ms, LAST_MS))).toISOString()
}

/** Many writes fall into one millisecond, and making the text costs as much as the rest of a write. */
function rememberLast(convert: (ms: number) => Instant): (ms: number) => Instant {
  let lastMs = Number.NaN
  let last = ''
  return (ms) => {
    if (ms !== lastMs) last = convert(ms)
    lastMs = ms
    return last
  }
}
