import type { Run } from '@coji/durably-core'
import { useMemo } from 'react'
import { formatClock, formatCount, formatMoment, plural } from '../format'
import { statusOf, type Tone } from '../run-status'
import { bucketsOf } from './buckets'

const WIDTH = 1000
const HEIGHT = 64
const TONES: readonly Tone[] = ['good', 'active', 'quiet', 'warn', 'bad']
/** Fewer would be no picture of anything. */
const FEWEST = 6

/** When the runs of the list were created, and what became of them. */
export function Activity({ runs }: { readonly runs: readonly Run[] }) {
  const buckets = useMemo(() => bucketsOf(runs.map((run) => [Date.parse(run.createdAt), statusOf(run).tone])), [runs])
  const first = buckets[0]
  const last = buckets.at(-1)
  if (first === undefined || last === undefined || buckets.length < FEWEST) return null
  const most = Math.max(...buckets.map(({ count }) => count))
  const x = (at: number) => ((at - first.from) / (last.to - first.from)) * WIDTH
  const y = (count: number) => (count / most) * HEIGHT
  const isOneDay = last.to - first.from < 86_400_000
  const ends = [first.from, last.to].map((at) => {
    const instant = new Date(at).toISOString()
    return isOneDay ? formatClock(instant).slice(0, 8) : formatMoment(instant)
  })
  return (
    <figure className="activity">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
        {buckets.map((bucket) => {
          let below = 0
          return TONES.map((tone) => {
            const count = bucket.byTone[tone] ?? 0
            if (count === 0) return null
            below += count
            return (
              <rect
                key={`${bucket.from} ${tone}`}
                className={`is-${tone}`}
                x={x(bucket.from) + 1}
                width={Math.max(1, x(bucket.to) - x(bucket.from) - 2)}
                y={HEIGHT - y(below)}
                height={y(count)}
              />
            )
          })
        })}
      </svg>
      <figcaption className="muted small">
        <span>{ends[0]}</span>
        <span>
          {plural(runs.length, 'run')} by creation: {summaryOf(runs)}
        </span>
        <span>{ends[1]}</span>
      </figcaption>
    </figure>
  )
}

/** `14 completed, 2 failed, 1 retrying` */
function summaryOf(runs: readonly Run[]): string {
  const counts = new Map<string, number>()
  for (const run of runs) {
    const { label } = statusOf(run)
    counts.set(label, (counts.get(label) ?? 0) + 1)
  }
  const sorted = [...counts].sort(([, a], [, b]) => b - a)
  return sorted.map(([label, count]) => `${formatCount(count)} ${label.toLowerCase()}`).join(', ')
}
