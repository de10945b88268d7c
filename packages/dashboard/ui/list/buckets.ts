import type { Tone } from '../run-status'

/** A stretch of time and what happened in it. */
export interface Bucket {
  readonly from: number
  readonly to: number
  readonly count: number
  readonly byTone: Readonly<Partial<Record<Tone, number>>>
}

const MOST = 48
const SHORTEST_MS = 1000

/** Cuts the time from the first to the last into equal parts. */
export function bucketsOf(items: readonly (readonly [at: number, tone: Tone])[]): readonly Bucket[] {
  if (items.length === 0) return []
  const times = items.map(([at]) => at)
  const from = times.reduce((least, at) => Math.min(least, at))
  const to = times.reduce((most, at) => Math.max(most, at))
  const width = Math.max(SHORTEST_MS, (to - from) / (MOST - 1))
  const tones = Array.from({ length: Math.floor((to - from) / width) + 1 }, (): Partial<Record<Tone, number>> => ({}))
  for (const [at, tone] of items) {
    const byTone = tones[Math.floor((at - from) / width)]
    if (byTone !== undefined) byTone[tone] = (byTone[tone] ?? 0) + 1
  }
  return tones.map((byTone, index) => ({
    from: from + index * width,
    to: from + (index + 1) * width,
    count: Object.values(byTone).reduce((sum, count) => sum + count, 0),
    byTone,
  }))
}
