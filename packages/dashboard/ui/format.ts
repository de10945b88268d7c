const counts = new Intl.NumberFormat('en')
const ago = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'short' })
const moments = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' })
const clock = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' })

export function formatCount(count: number): string {
  return counts.format(count)
}

export function plural(count: number, one: string): string {
  return count === 1 ? `1 ${one}` : `${formatCount(count)} ${one}s`
}

/** `85 ms`, `1.2 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`. */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 59_950) return `${Number((ms / 1000).toFixed(1))} s`
  const seconds = Math.round(ms / 1000)
  if (seconds < 3600) return withRest(seconds, { size: 60, unit: 'min', rest: 's' })
  const minutes = Math.floor(seconds / 60)
  if (minutes < 1440) return withRest(minutes, { size: 60, unit: 'h', rest: 'min' })
  return withRest(Math.floor(minutes / 60), { size: 24, unit: 'd', rest: 'h' })
}

interface Units {
  readonly size: number
  readonly unit: string
  readonly rest: string
}

function withRest(whole: number, { size, unit, rest }: Units): string {
  const left = whole % size
  const main = `${Math.floor(whole / size)} ${unit}`
  return left === 0 ? main : `${main} ${left} ${rest}`
}

/** Whole seconds of what goes on: what is finer would only flicker. */
export function formatElapsed(ms: number): string {
  return ms < 1000 ? '0 s' : formatDuration(Math.floor(ms / 1000) * 1000)
}

export function formatAgo(instant: string, now: number): string {
  const seconds = Math.max(0, Math.floor((now - Date.parse(instant)) / 1000))
  if (seconds < 5) return 'just now'
  if (seconds < 60) return ago.format(-seconds, 'second')
  if (seconds < 3600) return ago.format(-Math.floor(seconds / 60), 'minute')
  if (seconds < 86_400) return ago.format(-Math.floor(seconds / 3600), 'hour')
  return ago.format(-Math.floor(seconds / 86_400), 'day')
}

export function formatMoment(instant: string): string {
  return moments.format(new Date(instant))
}

/** With milliseconds, for what happens close together. */
export function formatClock(instant: string): string {
  return `${clock.format(new Date(instant))}.${instant.slice(20, 23)}`
}

/** The end of an id tells runs apart; its beginning is their time. */
export function shortId(id: string): string {
  return id.slice(-8)
}

export function toJson(value: unknown): string {
  return value === undefined ? 'undefined' : JSON.stringify(value, null, 2)
}
