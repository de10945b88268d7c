import type { Run, StoredEvent } from '@coji/durably-core'
import type { StepView } from '@coji/durably-react'

/** What a bar says of its time. */
export type BarKind = 'working' | 'waiting' | 'done' | 'failed' | 'queued'

export interface Bar {
  readonly from: number
  /** Now, of what goes on. */
  readonly to: number
  readonly kind: BarKind
  readonly isOpen: boolean
}

/** One step by its name with all its attempts. */
export interface TimelineRow {
  readonly name: string
  readonly steps: readonly StepView[]
  readonly bars: readonly Bar[]
}

export interface Timeline {
  readonly from: number
  readonly to: number
  /** The run itself: in hands, waiting, queued. */
  readonly run: readonly Bar[]
  readonly rows: readonly TimelineRow[]
}

const WAITS: ReadonlySet<string> = new Set(['sleep', 'signal', 'child', 'waitAll'])

const BEGINS = 'run:start'
const RESTS: ReadonlySet<string> = new Set(['run:suspend', 'run:park', 'run:release', 'run:recover', 'run:retry'])

interface TimelineParams {
  readonly run: Run
  readonly steps: readonly StepView[]
  /** Those that are stored; none where nobody keeps a history. */
  readonly events: readonly StoredEvent[]
  readonly now: number
}

export function timelineOf({ run, steps, events, now }: TimelineParams): Timeline {
  const end = run.finishedAt === null ? now : Date.parse(run.finishedAt)
  const runBars = runBarsOf(run, { events, end })
  const rows = rowsOf(steps, { end, isOver: run.finishedAt !== null })
  const bars = [...runBars, ...rows.flatMap((row) => row.bars)]
  // Clocks of workers and database may differ by a little.
  const to = bars.reduce((latest, bar) => Math.max(latest, bar.to), end)
  const created = Date.parse(run.createdAt)
  const started = run.startedAt === null ? null : Date.parse(run.startedAt)
  // A run that waited longer than it worked would show nothing of its work.
  const from = started !== null && started - created > (to - started) / 2 ? started : created
  return { from, to: Math.max(to, from + 1), run: runBars.filter((bar) => bar.to > from), rows }
}

interface RunBarsParams {
  readonly events: readonly StoredEvent[]
  readonly end: number
}

/** From the history where there is one: from each start to what ended that execution, and what lies between. */
function runBarsOf(run: Run, { events, end }: RunBarsParams): readonly Bar[] {
  const isOpen = run.finishedAt === null
  const created = Date.parse(run.createdAt)
  if (run.startedAt === null) return [{ from: created, to: end, kind: 'queued', isOpen }]
  const bars: Bar[] = []
  let since = created
  let kind = 'queued' as BarKind
  const turn = (at: number, next: BarKind) => {
    if (at > since) bars.push({ from: since, to: at, kind, isOpen: false })
    since = Math.max(since, at)
    kind = next
  }
  for (const { type, timestamp } of events) {
    if (type === BEGINS) turn(Date.parse(timestamp), 'working')
    else if (RESTS.has(type) && kind === 'working') turn(Date.parse(timestamp), 'waiting')
  }
  if (bars.length === 0) turn(Date.parse(run.startedAt), 'working')
  if (kind === 'working' && isOpen && run.status !== 'running') kind = 'waiting'
  bars.push({ from: since, to: Math.max(since, end), kind, isOpen })
  return bars
}

interface RowsParams {
  readonly end: number
  readonly isOver: boolean
}

function rowsOf(steps: readonly StepView[], { end, isOver }: RowsParams): readonly TimelineRow[] {
  const byName = new Map<string, StepView[]>()
  for (const step of steps) byName.set(step.name, [...(byName.get(step.name) ?? []), step])
  return [...byName].map(([name, attempts]) => ({
    name,
    steps: attempts,
    bars: attempts.map((step) => barOf(step, { end, isOver })),
  }))
}

function barOf({ startedAt, completedAt, status, kind }: StepView, { end, isOver }: RowsParams): Bar {
  const from = Date.parse(startedAt)
  const to = completedAt === null ? end : Date.parse(completedAt)
  const isWait = status === 'waiting' || (kind !== null && WAITS.has(kind))
  const words = {
    completed: 'done',
    failed: 'failed',
    running: 'working',
    started: 'working',
    waiting: 'waiting',
  } as const
  const shown = isWait && status !== 'failed' ? 'waiting' : words[status]
  return { from, to: Math.max(from, to), kind: shown, isOpen: completedAt === null && !isOver }
}
