import { InvalidOptionError } from '@coji/durably-core'
import { Cron } from 'croner'
import { fixedTimes } from './fixed-times'

/** When a schedule fires by the clock on the wall. */
export interface CalendarOptions {
  /** Five fields: minute, hour, day of the month, month, day of the week. Where both kinds of days are given, one of them is enough. */
  readonly cron: string
  /** Of the IANA database, such as `Asia/Tokyo`. */
  readonly zone: string
}

/**
 * The instants of a cron pattern in a time zone. A time is fixed when minute and hour have no `*`: it fires once a day,
 * right after the gap where the clock is set forward over it, and the first time where the clock is set back over it. A
 * pattern with a `*` there fires at every real tick.
 */
export class Calendar {
  readonly #patterns: readonly Pattern[]

  constructor({ cron, zone }: CalendarOptions) {
    refuseUnknownZone(zone)
    const fields = cron.trim().split(/\s+/)
    const [minutes = '', hours = '', ...ofDays] = fields
    if (fields.length !== 5) {
      throw new InvalidOptionError(
        `The cron pattern "${cron}" has ${fields.length} fields. It takes five: minute hour day month weekday.`,
      )
    }
    const times = fixedTimes(minutes, hours) ?? [[minutes, hours]]
    const texts = times.flatMap((time) => daysOf(ofDays).map((days) => [...time, ...days].join(' ')))
    this.#patterns = texts.map((text) => new Pattern(parse(text, { cron, zone })))
    if (this.next(Date.UTC(2024, 0, 1)) === null) {
      throw new InvalidOptionError(`The cron pattern "${cron}" never fires: there is no such day.`)
    }
  }

  /** The first instant after that one, in milliseconds since 1970. */
  next(afterMs: number): number | null {
    let first: number | null = null
    for (const pattern of this.#patterns) {
      const next = pattern.next(afterMs)
      if (next !== null && (first === null || next < first)) first = next
    }
    return first
  }
}

/**
 * As one pattern croner loses one of several times in a gap, fires one of several twice in a repeated hour, and loses the
 * first of a month after February where days of the week are given as well. Of single ones it makes no mistake.
 */
function daysOf(fields: readonly string[]): readonly (readonly string[])[] {
  const [day = '', month = '', weekday = ''] = fields.map((field) => (field === '?' ? '*' : field))
  return day === '*' || weekday === '*'
    ? [[day, month, weekday]]
    : [
        [day, month, '*'],
        ['*', month, weekday],
      ]
}

/** Between these there is no other instant. */
interface Gap {
  readonly from: number
  readonly next: number | null
}

/** Those who share a pattern ask for the instants around now, each for a few. */
const GAPS = 8

/** What is stored goes on as it did: one schedule that cannot be read would stop them all. So this is for definitions only. */
export function refuseModifiers(cron: string): void {
  if (!cron.includes('+')) return
  throw new InvalidOptionError(
    `The cron pattern "${cron}" has a "+", which is not known here: of two kinds of days one is enough.`,
  )
}

/** A computation takes a tenth of a millisecond, and its answer holds for every instant up to it. */
class Pattern {
  readonly #cron: Cron
  /** The last one first. */
  #known: readonly Gap[] = []

  constructor(cron: Cron) {
    this.#cron = cron
  }

  next(afterMs: number): number | null {
    const known = this.#known.find(({ from, next }) => from <= afterMs && (next === null || afterMs < next))
    if (known !== undefined) return known.next
    const next = this.#cron.nextRun(new Date(afterMs))?.getTime() ?? null
    this.#known = [{ from: afterMs, next }, ...this.#known.slice(0, GAPS - 1)]
    return next
  }
}

function parse(pattern: string, { cron, zone }: CalendarOptions): Cron {
  try {
    return new Cron(pattern, { timezone: zone, mode: '5-part' })
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new InvalidOptionError(`The cron pattern "${cron}" is not understood: ${why}`)
  }
}

function refuseUnknownZone(zone: string): void {
  try {
    new Intl.DateTimeFormat('en', { timeZone: zone })
  } catch {
    throw new InvalidOptionError(`There is no time zone "${zone}". It takes a name such as Asia/Tokyo, or UTC.`)
  }
}
