const counts = new Intl.NumberFormat('en')
const ago = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'short' })
const moments = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' })
const clock = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' })

export function formatCount(count: number): string {
  return counts.format(count)
}

export function formatSteps(count: number): string {
  return count === 1 ? '1 step was' : `${formatCount(count)} steps were`
}

export function formatPercent(share: number): string {
  return `${Math.floor(share * 100)} %`
}

export function formatMoney(cents: number): string {
  return counts.format(Math.round(cents / 100))
}

/** `85 ms`, `1.2 s`, `3 min 20 s`, `2 h 5 min`. */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 59_950) return `${Number((ms / 1000).toFixed(1))} s`
  const seconds = Math.round(ms / 1000)
  if (seconds < 3600) return withRest(Math.floor(seconds / 60), 'min', { rest: seconds % 60, unit: 's' })
  const minutes = Math.floor(seconds / 60)
  return withRest(Math.floor(minutes / 60), 'h', { rest: minutes % 60, unit: 'min' })
}

function withRest(whole: number, unit: string, part: { readonly rest: number; readonly unit: string }): string {
  return part.rest === 0 ? `${whole} ${unit}` : `${whole} ${unit} ${part.rest} ${part.unit}`
}

/** Whole seconds of what goes on: what is finer would only flicker. */
export function formatElapsed(ms: number): string {
  return ms < 1000 ? '0 s' : formatDuration(Math.floor(ms / 1000) * 1000)
}

/** Whole seconds until something is due; it is never 0 before. */
export function formatCountdown(ms: number): string {
  return formatDuration(Math.max(1, Math.ceil(ms / 1000)) * 1000)
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

export function formatClock(instant: string): string {
  return `${clock.format(new Date(instant))}.${instant.slice(20, 23)}`
}
