import { cleanText } from './clean-text'
import { InvalidOptionError } from './errors'

const MAX_NAME_LENGTH = 512

/** For names and keys: what every database keeps as it is, and can have in an index. */
export function refuseBadText(what: string, text: unknown): void {
  if (text === undefined) return
  if (typeof text !== 'string') throw new InvalidOptionError(`${what} must be a string.`)
  if (text.length > MAX_NAME_LENGTH)
    throw new InvalidOptionError(`${what} is longer than ${MAX_NAME_LENGTH} characters.`)
  if (cleanText(text, MAX_NAME_LENGTH) !== text) throw new InvalidOptionError(`${what} contains NUL or broken Unicode.`)
}

/** An empty one is most likely an id that was not there, and would be the same for all. */
export function refuseBadKey(what: string, key: unknown): void {
  refuseBadText(what, key)
  if (key === '') throw new InvalidOptionError(`${what} must not be empty: give a text, or leave it out.`)
}

export function refuseBadDuration(what: string, ms: number | undefined): void {
  if (ms === undefined || (typeof ms === 'number' && ms >= 0 && ms < Number.POSITIVE_INFINITY)) return
  throw new InvalidOptionError(`${what} must be a number of milliseconds from 0, not ${String(ms)}.`)
}

/** For what would spin, or never come, at 0. */
export function requireDuration(what: string, ms: number): void {
  if (typeof ms === 'number' && ms > 0 && ms < Number.POSITIVE_INFINITY) return
  throw new InvalidOptionError(`${what} must be more than 0 ms, not ${String(ms)}.`)
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
