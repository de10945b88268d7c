const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
] as const

/** `3 d 4 h`, `2 min`, `1.4 s`, `12 ms`: as exact as anybody wants it. */
export function durationOf(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`
  const at = UNITS.findIndex(([, length]) => ms >= length)
  const [unit, length] = UNITS[at] ?? ['s', 1000]
  const whole = Math.floor(ms / length)
  const [smaller, part] = UNITS[at + 1] ?? ['', 0]
  const rest = part === 0 ? 0 : Math.floor((ms % length) / part)
  return rest === 0 || unit === 'min' ? `${whole} ${unit}` : `${whole} ${unit} ${rest} ${smaller}`
}

/** The time from one instant to another; `null` where one of them is missing. */
export function between(from: string | null, until: string | null): string | null {
  return from === null || until === null ? null : durationOf(Date.parse(until) - Date.parse(from))
}

export function ago(instant: string, now: number): string {
  const ms = now - Date.parse(instant)
  return ms < 0 ? `in ${durationOf(-ms)}` : `${durationOf(ms)} ago`
}

/** To the second, by the clock of the wall. */
export function momentOf(instant: string): string {
  const date = new Date(instant)
  const two = (part: number) => String(part).padStart(2, '0')
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
}

/** `1 run`, `2 runs`. */
export function count(number: number, one: string, many = `${one}s`): string {
  return `${number} ${number === 1 ? one : many}`
}
