const HOUR_MS = 3_600_000

/** So far back, in parts of this size. */
export interface Range {
  readonly key: string
  readonly label: string
  readonly interval: 'hour' | 'day'
  readonly parts: number
}

export const DAY: Range = { key: '24h', label: '24 hours', interval: 'hour', parts: 24 }

export const RANGES: readonly Range[] = [
  DAY,
  { key: '7d', label: '7 days', interval: 'hour', parts: 7 * 24 },
  { key: '30d', label: '30 days', interval: 'day', parts: 30 },
]

export function partMs({ interval }: Range): number {
  return interval === 'hour' ? HOUR_MS : 24 * HOUR_MS
}

/** The beginnings of its parts, up to the one that is now. */
export function partsOf(range: Range, now: number): readonly number[] {
  const ms = partMs(range)
  const last = Math.floor(now / ms) * ms
  return Array.from({ length: range.parts }, (_, index) => last - (range.parts - 1 - index) * ms)
}
