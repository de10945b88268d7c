import { LONGEST_DELAY_MS, toInstant } from './environment'
import { InvalidOptionError } from './errors'

const MAX_NAME_LENGTH = 512

/** For names and keys: what every database keeps as it is, and can have in an index. */
export function refuseBadText(what: string, text: unknown): void {
  if (text === undefined) return
  if (typeof text !== 'string') throw new InvalidOptionError(`${what} must be a string.`)
  if (text.length > MAX_NAME_LENGTH)
    throw new InvalidOptionError(`${what} is longer than ${MAX_NAME_LENGTH} characters.`)
  if (!isStorableText(text)) throw new InvalidOptionError(`${what} contains NUL or broken Unicode.`)
}

/** Postgres takes no NUL, and files keep what is no character as another one. */
export function isStorableText(text: string): boolean {
  return !/\0|\p{Surrogate}/u.test(text)
}

/** An empty one is most likely an id that was not there, and would be the same for all. */
export function refuseBadKey(what: string, key: unknown): void {
  refuseBadText(what, key)
  if (key === '') throw new InvalidOptionError(`${what} must not be empty: give a text, or leave it out.`)
}

/** For how long a process waits: no database hears of it. */
export function refuseBadDuration(what: string, ms: number | undefined): void {
  if (ms === undefined || (typeof ms === 'number' && ms >= 0 && ms < Number.POSITIVE_INFINITY)) return
  throw new InvalidOptionError(`${what} must be a number of milliseconds from 0, not ${String(ms)}.`)
}

/** Of what is longer databases make no date, or another one. */
export function isStorableDelay(ms: unknown): ms is number {
  return typeof ms === 'number' && ms >= 0 && ms <= LONGEST_DELAY_MS
}

/** For how long something is put off, or how old it is at least: 0 is a time as well. */
export function requireDelay(what: string, ms: number): void {
  if (isStorableDelay(ms)) return
  throw new InvalidOptionError(`${what} must be a number of milliseconds from 0 up to 100 years, not ${String(ms)}.`)
}

/** Instants are compared as text, so all of them are of one width; and Postgres knows no year 0. */
export function isStorableInstant(given: Date | string): boolean {
  if (typeof given !== 'string' && !(given instanceof Date)) return false
  const date = new Date(given)
  return !Number.isNaN(date.getTime()) && date.getUTCFullYear() >= 1 && date.getUTCFullYear() <= 9999
}

/** An instant of the application as it is stored. */
export function instantIn(what: string, given: Date | string): string {
  if (isStorableInstant(given)) return toInstant(new Date(given).getTime())
  throw new InvalidOptionError(
    `${what} must be a Date or an ISO 8601 text of the years 1 to 9999, not ${String(given)}.`,
  )
}

/** An instant as records have it and nothing else: databases compare it as it is, or read it each in its own way. */
export function isInstant(value: unknown): value is string {
  if (typeof value !== 'string') return false
  const ms = Date.parse(value)
  return !Number.isNaN(ms) && new Date(ms).toISOString() === value
}

/** For what is on or off. */
export function requireBoolean(what: string, value: unknown): void {
  if (typeof value === 'boolean') return
  throw new InvalidOptionError(`${what} must be true or false, not ${String(value)}.`)
}

/** For what would spin, or never come, at 0. */
export function requireDuration(what: string, ms: number, most = LONGEST_DELAY_MS): void {
  if (typeof ms === 'number' && ms > 0 && ms <= most) return
  const limit = most === LONGEST_DELAY_MS ? '100 years' : `${most} ms`
  throw new InvalidOptionError(
    `${what} must be ${ms > most ? `at most ${limit}` : 'more than 0 ms'}, not ${String(ms)}.`,
  )
}

/** For counts and limits. */
export function requireInteger(
  what: string,
  value: number,
  range: { readonly from: number; readonly to?: number },
): void {
  const { from, to = Number.MAX_SAFE_INTEGER } = range
  if (Number.isSafeInteger(value) && value >= from && value <= to) return
  const limits = range.to === undefined ? `from ${from}` : `from ${from} to ${to}`
  throw new InvalidOptionError(`${what} must be an integer ${limits}, not ${String(value)}.`)
}

/** An object of texts. A copy: who gave it may go on changing it. */
export function requireLabels(labels: unknown, what: string): Readonly<Record<string, string>> {
  if (typeof labels !== 'object' || labels === null || Array.isArray(labels)) {
    throw new InvalidOptionError(`${what}: labels must be an object of texts, such as { gpu: 'yes' }.`)
  }
  for (const [name, value] of Object.entries(labels)) {
    refuseBadText('The name of a label', name)
    refuseBadText(`Label "${name}"`, value ?? null)
  }
  return { ...labels }
}
