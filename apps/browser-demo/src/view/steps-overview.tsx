import { formatDuration } from '../format'
import type { Gap, StepRow, Timeline } from '../step-timeline'
import type { TimeAxis } from '../time-axis'
import { place, toneOf } from './bar-place'

interface OverviewProps {
  readonly timeline: Timeline
  readonly axis: TimeAxis
}

const WIDTH = 1000
/** What is too short to be seen is drawn a little longer. */
const SHORTEST = 4

/** One path for each look, however many bars. */
function pathsOf(rows: readonly StepRow[], { shareAt }: TimeAxis): [string, string][] {
  const paths = new Map<string, string>()
  for (const { kind, execution, from, to } of rows.flatMap(({ bars }) => bars)) {
    const look = `${kind} ${toneOf(execution)}`
    const x = shareAt(from) * WIDTH
    const width = Math.max(SHORTEST, shareAt(to) * WIDTH - x)
    paths.set(look, `${paths.get(look) ?? ''}M${x.toFixed(1)} 0h${width.toFixed(1)}v10h-${width.toFixed(1)}z`)
  }
  return [...paths]
}

/** All steps in one line, with what happened between the executions. */
export function Overview({ timeline: { rows, gaps, executions }, axis }: OverviewProps) {
  const { shareAt } = axis
  return (
    <div className="chart-overview" aria-hidden="true">
      <div className="plot">
        {gaps.map(({ why, from, to }) => (
          <span key={from} className={`gap ${why}`} style={place(shareAt(from), shareAt(to))} />
        ))}
        <svg viewBox={`0 0 ${WIDTH} 10`} preserveAspectRatio="none" className="overview-bars" aria-hidden="true">
          {pathsOf(rows, axis).map(([look, path]) => (
            <path key={look} className={look} d={path} />
          ))}
        </svg>
        {executions.slice(1).map((begun, index) => (
          <span key={begun} className="mark" style={{ insetInlineStart: `${shareAt(begun) * 100}%` }}>
            <span>{index + 2}</span>
          </span>
        ))}
      </div>
    </div>
  )
}

const WHY: Readonly<Record<Gap['why'], string>> = {
  crash: 'worker gone',
  retry: 'before a retry',
  release: 'given back',
}

/** Says in words what the overview shows between the executions. */
export function Legend({ gaps, executions }: { readonly gaps: readonly Gap[]; readonly executions: number }) {
  if (executions < 2 && gaps.length === 0) return null
  return (
    <ul className="legend" aria-label="Executions">
      <li>
        {executions} {executions === 1 ? 'execution' : 'executions'}
      </li>
      {gaps.map(({ why, from, to }) => (
        <li key={from}>
          <span className={`swatch gap ${why}`} aria-hidden="true" /> {WHY[why]} for {formatDuration(to - from)}
        </li>
      ))}
    </ul>
  )
}
