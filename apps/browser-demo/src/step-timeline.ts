import type { Run, Step, StoredEvent } from '@coji/durably'
import type { OpenStep, RunDetail } from './demo-state'

/** `cut`: its worker died before the result was stored; the step has run, or will run, again. */
export type BarKind = 'completed' | 'failed' | 'running' | 'waiting' | 'cut'

export interface Bar {
  readonly kind: BarKind
  readonly from: number
  readonly to: number
  /** In which execution of the run, from 1. */
  readonly execution: number
}

export interface StepRow {
  readonly name: string
  readonly bars: readonly Bar[]
}

/** A time without anybody executing the run. `to` is now while it lasts. */
export interface Gap {
  readonly why: 'crash' | 'retry' | 'release'
  readonly from: number
  readonly to: number
}

export interface Timeline {
  readonly from: number
  readonly to: number
  readonly rows: readonly StepRow[]
  readonly gaps: readonly Gap[]
  /** When each execution began. */
  readonly executions: readonly number[]
}

export interface TimelineParams extends RunDetail {
  readonly openSteps: readonly OpenStep[]
  readonly now: number
}

/** Arranges what is known of a run on one axis of time. */
export function timelineOf(params: TimelineParams): Timeline | null {
  const { run, events, now } = params
  const begun = events.flatMap((event) => (event.type === 'run:start' ? [at(event.timestamp)] : []))
  const first = begun[0] ?? (run.startedAt === null ? undefined : at(run.startedAt))
  if (first === undefined) return null
  const executions = begun.length === 0 ? [first] : begun
  const end = run.finishedAt === null ? Math.max(now, first) : at(run.finishedAt)
  const gaps = gapsOf({ ...params, executions, end })
  const bars = barsOf({ ...params, executions, gaps, end })
  const to = Math.max(end, first + 1, ...bars.map(({ bar }) => bar.to))
  return { from: first, to, executions, gaps, rows: rowsOf(bars) }
}

function at(instant: string): number {
  return Date.parse(instant)
}

/** These happen while nobody executes the run. */
const SILENT = new Set(['run:start', 'run:recover', 'run:retry', 'run:trigger', 'run:deduplicated', 'run:cancel'])
const REASONS = { 'run:recover': 'crash', 'run:retry': 'retry', 'run:release': 'release' } as const

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

interface NamedBar {
  readonly name: string
  readonly bar: Bar
}

interface BarsParams extends GapsParams {
  readonly gaps: readonly Gap[]
}

function barsOf({ run, steps, events, openSteps, executions, gaps, end }: BarsParams): NamedBar[] {
  const executionAt = (time: number) => Math.max(1, executions.filter((begun) => begun <= time).length)
  const recorded = steps.map((step) => ({ name: step.name, bar: barOf(step, executionAt(at(step.startedAt)), end) }))
  const isRecorded = (name: string, from: number) =>
    recorded.some((each) => each.name === name && each.bar.from <= from + 1 && each.bar.to >= from)
  const begun = new Map(openStarts(events, openSteps).map((start) => [`${start.name} ${start.from}`, start]))
  const open = [...begun.values()].flatMap(({ name, from }): NamedBar[] => {
    const execution = executionAt(from)
    if (isRecorded(name, from)) return []
    const gap = gaps.find((each) => each.to > from && execution < executionAt(each.to))
    const lives = run.status === 'running' && execution === executions.length
    if (lives) return [{ name, bar: { kind: 'running', from, to: Math.max(from, end), execution } }]
    return [{ name, bar: { kind: 'cut', from, to: Math.max(from, gap?.from ?? end), execution } }]
  })
  return [...recorded, ...open]
}

function barOf(step: Step, execution: number, end: number): Bar {
  const kind = step.status === 'started' ? 'running' : step.status
  return {
    kind,
    from: at(step.startedAt),
    to: step.completedAt === null ? Math.max(at(step.startedAt), end) : at(step.completedAt),
    execution,
  }
}

interface OpenStart {
  readonly name: string
  readonly from: number
}

/** Steps that began and of which no event says that they ended. */
function openStarts(events: readonly StoredEvent[], openSteps: readonly OpenStep[]): OpenStart[] {
  const starts: OpenStart[] = []
  const current = new Map<string, number>()
  for (const event of events) {
    const name = 'stepName' in event && typeof event.stepName === 'string' ? event.stepName : null
    if (event.type === 'run:start') flush()
    if (name === null) continue
    if (event.type === 'step:start') current.set(name, at(event.timestamp))
    if (event.type === 'step:complete' || event.type === 'step:fail') current.delete(name)
  }
  for (const { name, startedAt } of openSteps) current.set(name, at(startedAt))
  flush()
  return starts

  function flush(): void {
    for (const [name, from] of current) starts.push({ name, from })
    current.clear()
  }
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

/** Whether the run is in nobody's hands at the moment because a worker died. */
export function isBetweenWorkers(run: Run, timeline: Timeline): boolean {
  return run.status === 'pending' && timeline.gaps.at(-1)?.why === 'crash'
}
