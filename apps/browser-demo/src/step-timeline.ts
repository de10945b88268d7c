import type { StoredEvent } from '@coji/durably'
import type { LiveStep, RunDetail } from './demo-state'
import { at, type Bar, barsOf, type Gap, type NamedBar } from './step-bars'

export interface StepRow {
  readonly name: string
  readonly bars: readonly Bar[]
}

export interface Timeline {
  readonly from: number
  readonly to: number
  readonly rows: readonly StepRow[]
  readonly gaps: readonly Gap[]
  /** When each execution began. */
  readonly executions: readonly number[]
  /** Steps that the last execution found done, and did not run again. */
  readonly skipped: number
}

export interface TimelineParams extends RunDetail {
  readonly liveSteps: readonly LiveStep[]
  readonly now: number
}

/** Arranges what is known of a run on one axis of time. */
export function timelineOf(params: TimelineParams): Timeline | null {
  const { run, events, now } = params
  const begun = events.flatMap((event) => (event.type === 'run:start' ? [at(event.timestamp)] : []))
  // Its row says when it started; after a retry by hand that is not the first time.
  const started = run.startedAt === null ? [] : [at(run.startedAt)]
  if (begun.length + started.length === 0) return null
  const first = Math.min(...begun.slice(0, 1), ...started)
  const executions = [first, ...begun.slice(1)]
  // The clock of the page may be behind what has just happened.
  const latest = events.reduce((time, { timestamp }) => Math.max(time, at(timestamp)), first)
  const end = run.finishedAt === null ? Math.max(now, latest) : at(run.finishedAt)
  const gaps = gapsOf({ ...params, executions, end })
  const bars = barsOf({ ...params, executions, gaps, end })
  const to = Math.max(end, first + 1, ...bars.map(({ bar }) => bar.to))
  const rows = rowsOf(bars)
  return { from: first, to, executions, gaps, rows, skipped: skippedOf(rows, executions.length) }
}

/** These happen while nobody executes the run. */
const SILENT = new Set(['run:start', 'run:recover', 'run:retry', 'run:trigger', 'run:deduplicated', 'run:cancel'])
const REASONS = {
  'run:recover': 'crash',
  'run:retry': 'retry',
  'run:release': 'release',
  'run:suspend': 'wait',
} as const

interface GapsParams extends TimelineParams {
  readonly executions: readonly number[]
  readonly end: number
}

function gapsOf({ run, steps, events, executions, end }: GapsParams): Gap[] {
  const signs = [
    ...events.flatMap(({ type, timestamp }) => (SILENT.has(type) ? [] : [at(timestamp)])),
    ...steps.flatMap(({ completedAt }) => (completedAt === null ? [] : [at(completedAt)])),
    ...executions,
  ]
  const gapBefore = (to: number): Gap => {
    const from = signs.filter((sign) => sign < to).reduce((latest, sign) => Math.max(latest, sign), 0)
    return { why: reasonBefore(events, to), from: Math.max(from, executions[0] ?? to), to }
  }
  const waits = run.status === 'pending' && executions.length > 0
  return [...executions.slice(1), ...(waits ? [end] : [])].map(gapBefore)
}

function reasonBefore(events: readonly StoredEvent[], to: number): Gap['why'] {
  for (const { type, timestamp } of [...events].reverse()) {
    if (at(timestamp) <= to && type in REASONS) return REASONS[type as keyof typeof REASONS]
  }
  return 'crash'
}

function rowsOf(bars: readonly NamedBar[]): StepRow[] {
  const rows = new Map<string, Bar[]>()
  for (const { name, bar } of [...bars].sort((a, b) => a.bar.from - b.bar.from)) {
    const row = rows.get(name)
    if (row === undefined) rows.set(name, [bar])
    else row.push(bar)
  }
  return [...rows].map(([name, each]) => ({ name, bars: each }))
}

function skippedOf(rows: readonly StepRow[], executions: number): number {
  const isSkipped = ({ bars }: StepRow) =>
    bars.some(({ kind, execution }) => kind === 'completed' && execution < executions)
  return rows.filter(isSkipped).length
}
