import type { Percentiles, StatisticsPoint } from '@coji/durably-core'
import { formatCount, formatDuration, formatMoment } from '../format'
import { BarChart, LineChart } from './chart'
import { partMs, type Range } from './ranges'
import { endedIn, failedIn, niceTime, niceTop, type Part, stretchesOf } from './series'

interface ChartsProps {
  readonly range: Range
  readonly parts: readonly Part[]
}

/** What happened over time. */
export function Charts({ range, parts }: ChartsProps) {
  const [first, last] = [parts[0]?.at ?? 0, (parts.at(-1)?.at ?? 0) + partMs(range)]
  const ends = [nameOf(first), 'now'] as const
  const until = `between ${nameOf(first)} and ${nameOf(last)}`
  const points = parts.flatMap(({ point }) => point ?? [])
  const most = (count: (point: StatisticsPoint) => number) => Math.max(0, ...points.map(count))
  const sum = (count: (point: StatisticsPoint) => number) => points.reduce((all, point) => all + count(point), 0)
  return (
    <div className="charts">
      <BarChart
        title="Throughput"
        summary={`${formatCount(sum(endedIn))} runs ended ${until}, at most ${formatCount(most(endedIn))} in one ${range.interval}.`}
        series={[
          { name: 'completed', tone: 'good' },
          { name: 'failed', tone: 'bad' },
          { name: 'cancelled', tone: 'quiet' },
        ]}
        bars={parts.map(({ at, point }) => ({
          label: `${nameOf(at)}: ${point === null ? 'nothing' : wordsOf(point)}`,
          values: point === null ? [] : [point.completed, failedIn(point), point.cancelled],
        }))}
        {...{ ends, top: niceTop(most(endedIn)), format: formatCount }}
      />
      <BarChart
        title="Failures"
        summary={`${formatCount(sum(failedIn))} runs failed or timed out ${until}.`}
        series={[
          { name: 'failed', tone: 'bad' },
          { name: 'timed out', tone: 'warn' },
        ]}
        bars={parts.map(({ at, point }) => ({
          label: `${nameOf(at)}: ${formatCount(point === null ? 0 : failedIn(point))} failed`,
          values: point === null ? [] : [point.failed, point.timedOut],
        }))}
        {...{ ends, top: niceTop(most(failedIn)), format: formatCount }}
      />
      <TimeChart title="Duration" of={({ duration }) => duration} {...{ parts, ends, until }} />
      <TimeChart title="Queue latency" of={({ queueLatency }) => queueLatency} {...{ parts, ends, until }} />
    </div>
  )
}

interface TimeChartProps {
  readonly title: string
  readonly of: (point: StatisticsPoint) => Percentiles | null
  readonly parts: readonly Part[]
  readonly ends: readonly [string, string]
  readonly until: string
}

function TimeChart({ title, of, parts, ends, until }: TimeChartProps) {
  const found = parts.flatMap(({ point }) => (point === null ? [] : (of(point) ?? [])))
  const most = Math.max(0, ...found.map(({ p95 }) => p95))
  const words =
    found.length === 0 ? 'There is none' : `The 95th percentile was ${formatDuration(most)} at most ${until}`
  return (
    <LineChart
      title={title}
      summary={`${title}. ${words}.`}
      lines={[
        { name: 'p50', className: 'is-active', stretches: stretchesOf(parts, of, 'p50') },
        { name: 'p95', className: 'is-warn', stretches: stretchesOf(parts, of, 'p95') },
      ]}
      labels={parts.map(({ at, point }) => `${nameOf(at)}: ${timesOf(point === null ? null : of(point))}`)}
      {...{ ends, top: niceTime(most), format: formatDuration }}
    />
  )
}

function timesOf(percentiles: Percentiles | null): string {
  if (percentiles === null) return 'nothing'
  return `half within ${formatDuration(percentiles.p50)}, 95 % within ${formatDuration(percentiles.p95)}`
}

function wordsOf(point: StatisticsPoint): string {
  return `${formatCount(point.completed)} completed, ${formatCount(failedIn(point))} failed, ${formatCount(point.cancelled)} cancelled`
}

/** Without seconds, which are all nothing. */
function nameOf(at: number): string {
  return formatMoment(new Date(at).toISOString()).replace(/:00$/, '')
}
