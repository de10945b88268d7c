import type { CSSProperties, ReactNode } from 'react'
import { formatDuration } from '../format'
import type { Bar, Timeline } from './timeline'

interface BarsProps {
  readonly bars: readonly Bar[]
  readonly timeline: Timeline
}

/** What happened when, on the axis of the timeline, and how long it took in all. */
export function Bars({ bars, timeline: { from, to } }: BarsProps) {
  const shareOf = (at: number) => Math.max(0, (at - from) / (to - from))
  const last = bars.at(-1)
  return (
    <span className="timeline-bars">
      {bars.map((bar) => (
        <span
          key={`${bar.from} ${bar.kind}`}
          className={`bar is-${bar.kind}`}
          data-open={bar.isOpen || undefined}
          style={{
            insetInlineStart: `${shareOf(bar.from) * 100}%`,
            inlineSize: `${(shareOf(bar.to) - shareOf(bar.from)) * 100}%`,
          }}
        />
      ))}
      {last !== undefined && (
        <BarText last={last} start={shareOf(last.from)} end={shareOf(last.to)}>
          {formatDuration(bars.reduce((sum, bar) => sum + (bar.to - bar.from), 0))}
          <span className="visually-hidden">, {bars.map(({ kind }) => kind).join(', then ')}</span>
        </BarText>
      )}
    </span>
  )
}

interface BarTextProps {
  readonly last: Bar
  readonly start: number
  readonly end: number
  readonly children: ReactNode
}

/** Beside the last bar, on the side that has room; else on it. */
function BarText({ last, start, end, children }: BarTextProps) {
  const isInside = end >= 0.85 && start <= 0.15
  const place: CSSProperties = isInside
    ? { insetInlineEnd: 6 }
    : end < 0.85
      ? { insetInlineStart: `calc(${end * 100}% + 6px)` }
      : { insetInlineEnd: `calc(${(1 - start) * 100}% + 6px)` }
  return (
    <span className={`bar-text on-${last.kind} ${isInside ? 'is-inside' : ''}`} style={place}>
      {children}
    </span>
  )
}
