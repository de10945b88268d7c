import type { Step, StoredEvent } from '@coji/durably'
import type { LiveStep, RunDetail } from './demo-state'

/** `cut`: its worker died before the result was stored; the step has run, or will run, again. */
export type BarKind = 'completed' | 'failed' | 'running' | 'waiting' | 'cut'

export interface Bar {
  readonly kind: BarKind
  readonly from: number
  readonly to: number
  /** In which execution of the run, from 1. */
  readonly execution: number
}

export interface NamedBar {
  readonly name: string
  readonly bar: Bar
}

/** A time without anybody executing the run. `to` is now while it lasts. */
export interface Gap {
  readonly why: 'crash' | 'retry' | 'release' | 'wait'
  readonly from: number
  readonly to: number
}

export interface BarsParams extends RunDetail {
  readonly liveSteps: readonly LiveStep[]
  /** When each execution began. */
  readonly executions: readonly number[]
  readonly gaps: readonly Gap[]
  readonly end: number
}

/** When each step ran: as its row says, else as its events told. */
export function barsOf({ run, steps, events, liveSteps, executions, gaps, end }: BarsParams): NamedBar[] {
  // A row knows its start to a millisecond.
  const executionAt = (time: number) => Math.max(1, executions.filter((begun) => begun <= time + 1).length)
  const stored = steps.map((step) => ({ name: step.name, bar: storedBar(step, executionAt(at(step.startedAt)), end) }))
  const isStored = ({ name, bar }: NamedBar) =>
    stored.some((each) => each.name === name && each.bar.execution === bar.execution && each.bar.to >= bar.from)
  // A step that is completed never begins again: what is live of it is old.
  const completed = new Set(steps.flatMap(({ name, status }) => (status === 'completed' ? [name] : [])))
  const live = liveSteps.filter(({ name }) => !completed.has(name))
  const ended = live.flatMap((step) => endedBar(step, executionAt(at(step.startedAt))))
  const open = [...openStarts(events, live)].map(({ name, from }): NamedBar => {
    const execution = executionAt(from)
    const isAlive = run.status === 'running' && execution === executions.length
    if (isAlive) return { name, bar: { kind: 'running', from, to: Math.max(from, end), execution } }
    const gap = gaps.find((each) => each.to > from && execution < executionAt(each.to))
    return { name, bar: { kind: 'cut', from, to: Math.max(from, gap?.from ?? end), execution } }
  })
  return [...stored, ...[...ended, ...open].filter((bar) => !isStored(bar))]
}

export function at(instant: string): number {
  return Date.parse(instant)
}

function storedBar({ status, startedAt, completedAt }: Step, execution: number, end: number): Bar {
  const from = at(startedAt)
  const to = completedAt === null ? Math.max(from, end) : at(completedAt)
  return { kind: status === 'started' ? 'running' : status, from, to, execution }
}

function endedBar({ name, end }: LiveStep, execution: number): NamedBar[] {
  if (end === null) return []
  const to = at(end.at)
  return [{ name, bar: { kind: end.kind, from: to - end.durationMs, to, execution } }]
}

interface OpenStart {
  readonly name: string
  readonly from: number
}

/** Steps that began and of which nothing says that they ended. */
function openStarts(events: readonly StoredEvent[], live: readonly LiveStep[]): OpenStart[] {
  const starts: OpenStart[] = []
  const current = new Map<string, number>()
  for (const event of events) {
    const name = 'stepName' in event && typeof event.stepName === 'string' ? event.stepName : null
    if (event.type === 'run:start') flush()
    if (name === null) continue
    if (event.type === 'step:start') current.set(name, at(event.timestamp))
    if (event.type === 'step:complete' || event.type === 'step:fail') current.delete(name)
  }
  for (const { name, startedAt, end } of live) {
    if (end === null) current.set(name, at(startedAt))
    else current.delete(name)
  }
  flush()
  return starts

  function flush(): void {
    for (const [name, from] of current) starts.push({ name, from })
    current.clear()
  }
}
