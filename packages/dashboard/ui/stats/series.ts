import type { Percentiles, Statistics, StatisticsPoint } from '@coji/durably-core'

/** A part of the time; without `point` nothing happened in it. */
export interface Part {
  readonly at: number
  readonly point: StatisticsPoint | null
}

/** Every part of the time, whether something happened in it or not. */
export function fillParts(parts: readonly number[], { points }: Statistics): readonly Part[] {
  const byInstant = new Map(points.map((point) => [Date.parse(point.at), point]))
  return parts.map((at) => ({ at, point: byInstant.get(at) ?? null }))
}

export function endedIn({ completed, failed, timedOut, cancelled }: Omit<StatisticsPoint, 'at'>): number {
  return completed + failed + timedOut + cancelled
}

export function failedIn({ failed, timedOut }: Pick<StatisticsPoint, 'failed' | 'timedOut'>): number {
  return failed + timedOut
}

/** `0.4 %` of what ended well or badly; `null` without any. */
export function failureShare(counts: Omit<StatisticsPoint, 'at'>): number | null {
  const judged = counts.completed + failedIn(counts)
  return judged === 0 ? null : failedIn(counts) / judged
}

/** Lines of percentiles, in stretches without gaps: where nothing happened there is nothing to draw. */
export function stretchesOf(
  parts: readonly Part[],
  percentiles: (point: StatisticsPoint) => Percentiles | null,
  share: keyof Percentiles,
): readonly (readonly (readonly [index: number, ms: number])[])[] {
  const stretches: [number, number][][] = []
  let isOpen = false
  for (const [index, { point }] of parts.entries()) {
    const found = point === null ? null : percentiles(point)
    if (found !== null) {
      if (!isOpen) stretches.push([])
      stretches.at(-1)?.push([index, found[share]])
    }
    isOpen = found !== null
  }
  return stretches
}

/** A round number that is not below, and whose half is one too. */
export function niceTop(most: number): number {
  if (most <= 2) return 2
  const size = 10 ** Math.floor(Math.log10(most))
  return ([1, 2, 4, 6, 8, 10].find((step) => step * size >= most) ?? 10) * size
}

const TIMES_MS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 30_000],
  ...[1, 2, 5, 10, 20, 30, 60, 120, 360, 720, 1440].map((minutes) => minutes * 60_000),
]

/** As `niceTop`, of milliseconds, in steps that people know times by. */
export function niceTime(most: number): number {
  return TIMES_MS.find((ms) => ms >= most) ?? niceTop(most / 86_400_000) * 86_400_000
}
