import { Temporal } from 'temporal-polyfill'

/** Five fields as sets; what is not restricted is `null`. */
interface Fields {
  readonly minutes: ReadonlySet<number>
  readonly hours: ReadonlySet<number>
  readonly isFixed: boolean
  readonly days: ReadonlySet<number> | null
  readonly months: ReadonlySet<number>
  readonly weekdays: ReadonlySet<number> | null
}

/** Where the clock is set, in milliseconds since 1970. */
export function transitionsOf(
  zone: string,
  { from, to }: { readonly from: number; readonly to: number },
): readonly number[] {
  const found: number[] = []
  let at = Temporal.Instant.fromEpochMilliseconds(from).toZonedDateTimeISO(zone).getTimeZoneTransition('next')
  while (at !== null && at.epochMilliseconds < to) {
    found.push(at.epochMilliseconds)
    at = at.getTimeZoneTransition('next')
  }
  return found
}

const DAYS_SEARCHED = 366 * 9

/** The rule of schedules once more, by other means: walks along the calendar with Temporal, day by day. */
export function nextByTemporal({ cron, zone, after }: { cron: string; zone: string; after: number }): number | null {
  const fields = read(cron)
  const at = Temporal.Instant.fromEpochMilliseconds(after).toZonedDateTimeISO(zone)
  let day = at.toPlainDate().subtract({ days: 1 })
  for (let count = 0; count < DAYS_SEARCHED; count++) {
    if (isDay(fields, day)) {
      const found = fields.isFixed ? firstFixed(fields, { day, zone, after }) : firstTick(fields, { day, zone, after })
      // What falls into a gap at midnight comes with the next day.
      if (found !== null) return found
    }
    day = day.add({ days: 1 })
  }
  return null
}

interface Search {
  readonly day: Temporal.PlainDate
  readonly zone: string
  readonly after: number
}

function firstFixed({ minutes, hours }: Fields, { day, zone, after }: Search): number | null {
  const all = [...hours].flatMap((hour) =>
    [...minutes].map((minute) => instantOf(day.toPlainDateTime({ hour, minute }), zone)),
  )
  const later = all.filter((ms) => ms > after)
  return later.length === 0 ? null : Math.min(...later)
}

/** The first one where the time comes twice; the end of the gap where it does not come. */
function instantOf(time: Temporal.PlainDateTime, zone: string): number {
  const earlier = time.toZonedDateTime(zone, { disambiguation: 'earlier' })
  if (earlier.toPlainDateTime().equals(time)) return earlier.epochMilliseconds
  return earlier.getTimeZoneTransition('next')?.epochMilliseconds ?? Number.NaN
}

/** Of all minutes that really pass on this day. */
function firstTick({ minutes, hours }: Fields, { day, zone, after }: Search): number | null {
  const end = day.add({ days: 1 }).toZonedDateTime({ timeZone: zone }).epochMilliseconds
  for (let ms = day.toZonedDateTime({ timeZone: zone }).epochMilliseconds; ms < end; ms += 60_000) {
    if (ms <= after) continue
    const { hour, minute } = Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(zone)
    if (hours.has(hour) && minutes.has(minute)) return ms
  }
  return null
}

function isDay({ days, months, weekdays }: Fields, day: Temporal.PlainDate): boolean {
  if (!months.has(day.month)) return false
  const matches = [days?.has(day.day), weekdays?.has(day.dayOfWeek % 7)].filter((match) => match !== undefined)
  return matches.length === 0 || matches.includes(true)
}

function read(cron: string): Fields {
  const [minute = '', hour = '', day = '', month = '', weekday = ''] = cron
    .split(' ')
    .map((field) => (field === '?' ? '*' : field))
  return {
    minutes: setOf(minute, 0, 59),
    hours: setOf(hour, 0, 23),
    isFixed: !`${minute}${hour}`.includes('*'),
    days: day === '*' ? null : setOf(day, 1, 31),
    months: setOf(month, 1, 12),
    weekdays: weekday === '*' ? null : setOf(weekday, 0, 6),
  }
}

function setOf(field: string, first: number, last: number): ReadonlySet<number> {
  const values = new Set<number>()
  for (const item of field.split(',')) {
    const [range = '', step = '1'] = item.split('/')
    const [from = first, to = from] = range === '*' ? [first, last] : range.split('-').map(Number)
    for (let value = from; value <= to; value += Number(step)) values.add(value)
  }
  return values
}
