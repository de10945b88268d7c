import { formatCount, formatDuration } from '../format'
import type { Gap } from '../step-bars'
import type { StepRow, Timeline } from '../step-timeline'
import type { TimeAxis } from '../time-axis'
import { place, toneOf } from './bar-place'

interface OverviewProps {
  readonly timeline: Timeline
  readonly axis: TimeAxis
}

const WIDTH = 1000
/** What is too short to be seen is drawn a little longer. */
const SHORTEST = 4
/** A number needs so much of the width. */
const NUMBER_SHARE = 0.035

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
export function Overview({ timeline, axis }: OverviewProps) {
  const { rows, gaps } = timeline
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
        {marksOf(timeline, axis).map(({ share, number }) => (
          <span key={share} className="mark" style={{ insetInlineStart: `${share * 100}%` }}>
            {number !== null && <span>{number}</span>}
          </span>
        ))}
      </div>
    </div>
  )
}

interface Mark {
  readonly share: number
  /** `null` where there is no room for it. */
  readonly number: number | null
}

/** Where each execution but the first began. */
function marksOf({ executions }: Timeline, { shareAt }: TimeAxis): Mark[] {
  const shares = executions.slice(1).map(shareAt)
  let lastNumbered = -1
  return shares.map((share, index): Mark => {
    if (share - lastNumbered < NUMBER_SHARE) return { share, number: null }
    lastNumbered = share
    return { share, number: index + 2 }
  })
}

const WHY: Readonly<Record<Gap['why'], string>> = {
  crash: 'no sign of a worker',
  retry: 'before a retry',
  release: 'given back',
  wait: 'waiting',
}

/** Says in words what the overview shows between the executions: once for each reason. */
export function Legend({ gaps, executions }: Pick<Timeline, 'gaps' | 'executions'>) {
  if (executions.length < 2 && gaps.length === 0) return null
  const reasons = [...new Set(gaps.map(({ why }) => why))]
  return (
    <ul className="legend" aria-label="Executions">
      <li>
        {formatCount(executions.length)} {executions.length === 1 ? 'execution' : 'executions'}
      </li>
      {reasons.map((why) => (
        <li key={why}>
          <span className={`swatch gap ${why}`} aria-hidden="true" /> {textOf(gaps.filter((gap) => gap.why === why))}
        </li>
      ))}
    </ul>
  )
}

function textOf(gaps: readonly Gap[]): string {
  const why = gaps[0] === undefined ? '' : WHY[gaps[0].why]
  const times = gaps.length === 1 ? '' : ` ${formatCount(gaps.length)} times`
  const ms = gaps.reduce((sum, { from, to }) => sum + to - from, 0)
  return `${why}${times} for ${formatDuration(ms)}${gaps.length === 1 ? '' : ' in all'}`
}
