import type { Timeline } from './step-timeline'
import { formatDuration } from './format'

/** Drawn at most so long, as a part of all time with work in it: a night without a worker must not hide the steps. */
const LONGEST_GAP = 0.12

const SHORTEST_LIVE_MS = 2000

const STEPS_MS = [
  ...([5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000] as const),
  ...([60_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000, 7_200_000, 21_600_000, 86_400_000] as const),
] as const

export interface Tick {
  readonly share: number
  readonly text: string
}

/** A place in time as a share of the drawn width. */
export interface TimeAxis {
  readonly shareAt: (time: number) => number
  readonly ticks: readonly Tick[]
}

interface Piece {
  readonly from: number
  readonly to: number
  /** Drawn length in ms of work. */
  readonly length: number
  readonly isGap: boolean
}

export interface TimeAxisOptions {
  /** While time goes by the axis has room on its right, so that what is drawn does not move all the time. */
  readonly isLive: boolean
  readonly maxTicks?: number
}

/** Time from left to right, with long gaps drawn shorter than they were. */
export function timeAxisOf(timeline: Timeline, { isLive, maxTicks = 5 }: TimeAxisOptions): TimeAxis {
  const pieces = isLive ? withRoom(piecesOf(timeline)) : piecesOf(timeline)
  const drawn = pieces.reduce((sum, { length }) => sum + length, 0)
  const shareAt = (time: number): number => {
    let before = 0
    for (const { from, to, length } of pieces) {
      if (time <= to) return to === from ? before / drawn : (before + length * portion(time, from, to)) / drawn
      before += length
    }
    return 1
  }
  return { shareAt, ticks: ticksOf({ pieces, drawn, shareAt, begin: timeline.from, maxTicks }) }
}

function portion(time: number, from: number, to: number): number {
  return Math.min(1, Math.max(0, (time - from) / (to - from)))
}

function piecesOf({ from, to, gaps }: Timeline): Piece[] {
  const idle = gaps.reduce((sum, gap) => sum + gap.to - gap.from, 0)
  const longest = Math.max(20, (to - from - idle) * LONGEST_GAP)
  const pieces: Piece[] = []
  let at = from
  for (const gap of gaps) {
    if (gap.from > at) pieces.push({ from: at, to: gap.from, length: gap.from - at, isGap: false })
    pieces.push({ from: gap.from, to: gap.to, length: Math.min(gap.to - gap.from, longest), isGap: true })
    at = gap.to
  }
  if (to > at) pieces.push({ from: at, to, length: to - at, isGap: false })
  return pieces
}

/** The drawn length grows by leaps of a fifth. */
function withRoom(pieces: readonly Piece[]): Piece[] {
  const drawn = pieces.reduce((sum, { length }) => sum + length, 0)
  let room = SHORTEST_LIVE_MS
  while (room < drawn) room *= 1.2
  const last = pieces.at(-1)
  if (last === undefined) return []
  const end = last.to + room - drawn
  // Behind a gap that still lasts nothing is drawn to scale.
  return [...pieces, { from: last.to, to: end, length: room - drawn, isGap: last.isGap }]
}

interface TicksParams {
  readonly pieces: readonly Piece[]
  readonly drawn: number
  readonly shareAt: (time: number) => number
  readonly begin: number
  readonly maxTicks: number
}

function ticksOf({ pieces, drawn, shareAt, begin, maxTicks }: TicksParams): Tick[] {
  const every = STEPS_MS.find((step) => drawn / step <= maxTicks) ?? Math.ceil(drawn / maxTicks)
  const ticks: Tick[] = []
  for (const { from, to, isGap } of pieces) {
    if (isGap) continue
    for (let elapsed = Math.ceil((from - begin) / every) * every; begin + elapsed <= to; elapsed += every) {
      ticks.push({ share: shareAt(begin + elapsed), text: elapsed === 0 ? '0' : formatDuration(elapsed) })
    }
  }
  return withSpace(ticks, 0.5 / maxTicks)
}

/** Behind it a text would not have room on a phone. */
const LAST_TICK = 0.8

/** Ticks on both sides of a gap may be too close for their texts. */
function withSpace(ticks: readonly Tick[], space: number): Tick[] {
  const kept: Tick[] = []
  for (const tick of ticks) {
    const { share } = kept.at(-1) ?? { share: -1 }
    if (tick.share - share >= space && tick.share <= LAST_TICK) kept.push(tick)
  }
  return kept
}
