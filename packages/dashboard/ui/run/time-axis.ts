import { formatDuration } from '../format'

export interface Tick {
  /** From 0 to 1. */
  readonly at: number
  readonly label: string
}

const STEPS_MS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((seconds) => seconds * 1000),
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * 60_000),
  ...[1, 2, 3, 6, 12].map((hours) => hours * 3_600_000),
]
const DAY_MS = 86_400_000

/** Marks at round times since the beginning, so many at most. */
export function ticksOf(durationMs: number, most: number): readonly Tick[] {
  const days = Math.ceil(durationMs / DAY_MS / most) * DAY_MS
  const stepMs = STEPS_MS.find((step) => durationMs / step <= most) ?? Math.max(DAY_MS, days)
  const count = Math.floor(durationMs / stepMs) + 1
  return Array.from({ length: count }, (_, index) => index * stepMs).map((ms) => ({
    at: ms / durationMs,
    label: ms === 0 ? '0' : formatDuration(ms),
  }))
}
