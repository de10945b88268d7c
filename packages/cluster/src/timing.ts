import { Calendar } from './calendar'

/** When a schedule fires, as it is stored. */
export type Timing =
  | { readonly kind: 'cron'; readonly cron: string; readonly zone: string }
  | { readonly kind: 'every'; readonly ms: number }
  | { readonly kind: 'at'; readonly at: string }

/** The time in which it does; both ends belong to it. */
export interface Term {
  readonly start: string | null
  readonly end: string | null
}

/** Answers the first instant after that one; `null`: there is none. All are milliseconds since 1970. */
export type NextAfter = (afterMs: number) => number | null

/** Instants are compared as text, so all of them are of one width. */
const LAST_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

/** The instants of a timing within its term. Intervals are counted from the start, or from when the schedule was created. */
export function instantsOf(timing: Timing, { start, end }: Term, createdAt: string): NextAfter {
  const startMs = start === null ? Number.NEGATIVE_INFINITY : Date.parse(start)
  const endMs = end === null ? LAST_MS : Date.parse(end)
  const next = nextOf(timing, { startMs: start === null ? null : startMs, createdMs: Date.parse(createdAt) })
  return (afterMs) => {
    const instant = next(Math.max(afterMs, startMs - 1))
    return instant === null || instant > endMs ? null : instant
  }
}

interface Beginning {
  readonly startMs: number | null
  readonly createdMs: number
}

function nextOf(timing: Timing, { startMs, createdMs }: Beginning): NextAfter {
  switch (timing.kind) {
    case 'cron': {
      const calendar = calendarOf(timing.cron, timing.zone)
      return (afterMs) => calendar.next(afterMs)
    }
    case 'every': {
      const first = startMs ?? createdMs + timing.ms
      return (afterMs) =>
        afterMs < first ? first : first + (Math.floor((afterMs - first) / timing.ms) + 1) * timing.ms
    }
    case 'at': {
      const at = Date.parse(timing.at)
      return (afterMs) => (afterMs < at ? at : null)
    }
  }
}

const MOST_CALENDARS = 5000
const calendars = new Map<string, Calendar>()

/** One for all schedules of a pattern, so that what one of them has computed is known to the others. */
export function calendarOf(cron: string, zone: string): Calendar {
  const key = `${cron} ${zone}`
  const calendar = calendars.get(key) ?? new Calendar({ cron, zone })
  if (calendars.size === MOST_CALENDARS) calendars.clear()
  calendars.set(key, calendar)
  return calendar
}

interface Span {
  readonly afterMs: number
  readonly untilMs: number
}

/**
 * The last instants after one and up to another, so many of them at least, found from the end: after a long sleep there may
 * be more than anybody could compute one by one.
 */
export function newestBetween(next: NextAfter, { afterMs, untilMs }: Span, atLeast: number): readonly number[] {
  for (let spanMs = atLeast * 1000; ; spanMs *= 4) {
    const from = Math.max(afterMs, untilMs - spanMs)
    const instants = upTo(next, { afterMs: from, untilMs })
    if (from === afterMs || instants.length >= atLeast) return instants
  }
}

function upTo(next: NextAfter, { afterMs, untilMs }: Span): number[] {
  const instants: number[] = []
  for (let instant = next(afterMs); instant !== null && instant <= untilMs; instant = next(instant)) {
    instants.push(instant)
  }
  return instants
}
