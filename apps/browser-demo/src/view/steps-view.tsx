import type { LiveStep, RunDetail } from '../demo-state'
import { formatCount, formatSteps } from '../format'
import { type Timeline, timelineOf } from '../step-timeline'
import { type TimeAxis, timeAxisOf } from '../time-axis'
import { placed, Row } from './step-row'
import { Legend, Overview } from './steps-overview'
import { useChartScroll } from './use-chart-scroll'
import { useNowUntil } from './use-now'

interface StepsViewProps {
  readonly detail: RunDetail
  readonly liveSteps: readonly LiveStep[]
}

/** While it runs the end is what one looks at, and drawing must leave time to the jobs. */
const MOST_LIVE_ROWS = 200
const MOST_ROWS = 1000

/** When each step ran, on one axis of time. */
export function StepsView({ detail, liveSteps }: StepsViewProps) {
  const { run } = detail
  const isLive = run.finishedAt === null
  const timeline = timelineOf({ ...detail, liveSteps, now: useNowUntil(run.finishedAt) })
  return (
    <section className="card steps" aria-label="Steps">
      <div className="steps-head">
        <h3>
          Steps <span className="muted">{timeline !== null && countText(timeline.rows.length, mostRows(isLive))}</span>
        </h3>
        {timeline !== null && <Legend gaps={timeline.gaps} executions={timeline.executions} />}
      </div>
      {timeline === null ? (
        <p className="muted empty">No step has begun.</p>
      ) : (
        <>
          <Resumed timeline={timeline} />
          <Chart timeline={timeline} axis={timeAxisOf(timeline, { isLive })} isLive={isLive} />
        </>
      )}
    </section>
  )
}

function mostRows(isLive: boolean): number {
  return isLive ? MOST_LIVE_ROWS : MOST_ROWS
}

function countText(steps: number, most: number): string {
  return steps <= most ? formatCount(steps) : `${formatCount(steps)}, the last ${formatCount(most)} shown`
}

/** Says what a worker did not have to do again. */
function Resumed({ timeline: { skipped, executions } }: { readonly timeline: Timeline }) {
  if (executions.length < 2 || skipped === 0) return null
  return (
    <p className="resumed">
      <strong>Resumed: {formatSteps(skipped)} skipped</strong>, because{' '}
      {skipped === 1 ? 'its result is' : 'their results are'} stored.
    </p>
  )
}

interface ChartProps {
  readonly timeline: Timeline
  readonly axis: TimeAxis
  readonly isLive: boolean
}

function Chart({ timeline, axis, isLive }: ChartProps) {
  const rows = timeline.rows.slice(-mostRows(isLive))
  const scroller = useChartScroll({ isLive, rows, executions: timeline.executions.length })
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard.
    // biome-ignore lint/a11y/useSemanticElements: a fieldset would be a group of form fields.
    <div className="chart" ref={scroller} tabIndex={0} role="group" aria-label="Time of each step">
      <div className="chart-head" aria-hidden="true">
        <Overview timeline={timeline} axis={axis} />
        <div className="chart-axis">
          <div className="plot">
            {axis.ticks.map(({ share, text }) => (
              <span key={text} className="tick" style={{ insetInlineStart: `${share * 100}%` }}>
                {text}
              </span>
            ))}
          </div>
        </div>
      </div>
      <ol className="chart-rows">
        {rows.map((row) => (
          <Row key={row.name} row={row} {...placed(row, axis)} />
        ))}
      </ol>
    </div>
  )
}
