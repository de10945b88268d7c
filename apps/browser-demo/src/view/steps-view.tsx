import { useLayoutEffect, useRef } from 'react'
import type { OpenStep, RunDetail } from '../demo-state'
import { formatCount } from '../format'
import { isBetweenWorkers, type Timeline, timelineOf } from '../step-timeline'
import { type TimeAxis, timeAxisOf } from '../time-axis'
import { placed, Row } from './step-row'
import { Legend, Overview } from './steps-overview'
import { useNow } from './use-now'

interface StepsViewProps {
  readonly detail: RunDetail
  readonly openSteps: readonly OpenStep[]
}

const GROWS_EVERY_MS = 250
/** While it runs the end is what one looks at, and drawing must leave time to the jobs. */
const MOST_LIVE_ROWS = 200
const MOST_ROWS = 1000
const NEAR_PX = 60

/** When each step ran, on one axis of time. */
export function StepsView({ detail, openSteps }: StepsViewProps) {
  const { run } = detail
  const isLive = run.status === 'running' || run.status === 'pending'
  const now = useNow(isLive ? GROWS_EVERY_MS : null)
  const timeline = timelineOf({ ...detail, openSteps, now })
  return (
    <section className="card steps" aria-label="Steps">
      <h3>
        Steps <span className="muted">{timeline !== null && countText(timeline.rows.length, mostRows(isLive))}</span>
      </h3>
      {timeline === null ? (
        <p className="muted empty">No step has begun: the run waits for its turn.</p>
      ) : (
        <>
          <Legend gaps={timeline.gaps} executions={timeline.executions.length} />
          {isBetweenWorkers(run, timeline) && (
            <p className="muted small">Its worker is gone; the run waits for the next one.</p>
          )}
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

interface ChartProps {
  readonly timeline: Timeline
  readonly axis: TimeAxis
  readonly isLive: boolean
}

function Chart({ timeline, axis, isLive }: ChartProps) {
  const { rows } = timeline
  const scroller = useFollowing(isLive, rows.length)
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard. */}
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset would be a group of form fields. */}
      <div className="chart" ref={scroller} tabIndex={0} role="group" aria-label="Time of each step">
        <div className="chart-head" aria-hidden="true">
          <div className="chart-axis">
            <div className="plot">
              {axis.ticks.map(({ share, text }) => (
                <span key={text} className="tick" style={{ insetInlineStart: `${share * 100}%` }}>
                  {text}
                </span>
              ))}
            </div>
          </div>
          <Overview timeline={timeline} axis={axis} />
        </div>
        <ol className="chart-rows">
          {rows.slice(-mostRows(isLive)).map((row) => (
            <Row key={row.name} row={row} {...placed(row, axis)} />
          ))}
        </ol>
      </div>
    </>
  )
}

/** Keeps the newest row in sight, unless the reader has scrolled away from the end. */
function useFollowing(isLive: boolean, rows: number) {
  const ref = useRef<HTMLDivElement>(null)
  const before = useRef(0)
  const wasLive = useRef(isLive)
  useLayoutEffect(() => {
    const { current } = ref
    // The last row comes together with the end of the run.
    const follows = isLive || wasLive.current
    wasLive.current = isLive
    if (current === null || !follows || rows === 0) return
    const isAtEnd = before.current - current.scrollTop - current.clientHeight < NEAR_PX
    if (isAtEnd) current.scrollTop = current.scrollHeight
    before.current = current.scrollHeight
  }, [isLive, rows])
  return ref
}
