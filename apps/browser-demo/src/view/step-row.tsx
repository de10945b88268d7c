import { memo } from 'react'
import { formatDuration } from '../format'
import type { StepRow } from '../step-timeline'
import type { TimeAxis } from '../time-axis'
import { place, toneOf } from './bar-place'

/** As text, so that a row is drawn again only when it looks different. */
export function placed({ bars }: StepRow, { shareAt }: TimeAxis) {
  const points = bars.map(({ from, to }) => `${shareAt(from).toFixed(4)} ${shareAt(to).toFixed(4)}`)
  return { points: points.join(' '), look: bars.map(({ kind, from, to }) => `${kind} ${to - from}`).join() }
}

interface RowProps {
  readonly row: StepRow
  readonly points: string
  readonly look: string
}

const KINDS = {
  completed: 'completed',
  failed: 'failed',
  running: 'running',
  waiting: 'waiting',
  cut: 'cut off',
} as const

/** A step: its name, when it ran, and for how long. When a worker died nobody knows. */
export const Row = memo(
  function Row({ row, points }: RowProps) {
    const shares = points.split(' ').map(Number)
    const last = row.bars.at(-1)
    const kind = last === undefined ? '' : KINDS[last.kind]
    return (
      <li className="chart-row">
        <span className="step-name" title={row.name}>
          {row.name}
        </span>
        <span className="plot" aria-hidden="true">
          {row.bars.map((bar, index) => (
            <span
              key={bar.from}
              className={`bar ${bar.kind} ${toneOf(bar.execution)}`}
              style={place(shares[index * 2] ?? 0, shares[index * 2 + 1] ?? 0)}
            />
          ))}
        </span>
        <span className="step-time">
          <span className={last?.kind === 'completed' ? 'visually-hidden' : `step-kind ${last?.kind}`}>{kind}</span>{' '}
          {last !== undefined && last.kind !== 'cut' && formatDuration(last.to - last.from)}
        </span>
      </li>
    )
  },
  (before, after) => before.points === after.points && before.look === after.look,
)
