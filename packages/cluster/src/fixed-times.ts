import { InvalidOptionError } from '@coji/durably-core'

/** The single minutes and hours of a pattern whose minute and hour have no `*`; `null` for one that has. */
export function fixedTimes(
  minutes: string,
  hours: string,
): readonly (readonly [minute: number, hour: number])[] | null {
  if (minutes.includes('*') || hours.includes('*')) return null
  const all = valuesIn(minutes, { name: 'minute', last: 59 })
  return valuesIn(hours, { name: 'hour', last: 23 }).flatMap((hour) => all.map((minute) => [minute, hour] as const))
}

interface Field {
  readonly name: string
  readonly last: number
}

/** Of a list such as `0,15` or `9-17` or `10-50/20`. */
function valuesIn(text: string, field: Field): readonly number[] {
  const values = new Set(text.split(',').flatMap((item) => rangeOf(item, field)))
  return [...values].sort((a, b) => a - b)
}

function rangeOf(item: string, { name, last }: Field): readonly number[] {
  const [, from, to = from, step = '1'] = /^(\d{1,2})(?:-(\d{1,2})(?:\/(\d{1,2}))?)?$/.exec(item) ?? []
  const [first, end, by] = [Number(from), Number(to), Number(step)]
  if (!(first <= end && end <= last && by > 0)) {
    throw new InvalidOptionError(
      `"${item}" is no ${name} of a cron pattern: it takes 0 to ${last}, and ranges such as 10-50/20.`,
    )
  }
  return Array.from({ length: Math.floor((end - first) / by) + 1 }, (_, index) => first + index * by)
}
