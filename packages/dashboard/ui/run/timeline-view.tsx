import type { Log, Run } from '@coji/durably-core'
import { type StepView, useRunEvents } from '@coji/durably-react'
import { useMemo, useState } from 'react'
import { plural } from '../format'
import { VirtualRows } from '../parts/virtual-rows'
import { useNarrow } from '../use-narrow'
import { useNow } from '../use-now'
import { Bars } from './bars'
import { StepDetail } from './step-detail'
import { ticksOf } from './time-axis'
import { type Timeline, type TimelineRow, timelineOf } from './timeline'

/** Of a longer history the executions are not drawn: it would all have to be read. */
const EVENTS_READ = 5000

/** Beyond there is no room for its words. */
const LAST_TICK = 0.94

interface TimelineViewProps {
  readonly run: Run
  readonly steps: readonly StepView[]
  readonly logs: readonly Log[]
}

export function TimelineView({ run, steps, logs }: TimelineViewProps) {
  const { events } = useRunEvents(run.lastEventSequence <= EVENTS_READ ? run.id : null)
  const now = useNow(run.finishedAt === null, 500)
  const timeline = useMemo(() => timelineOf({ run, steps, events, now }), [run, steps, events, now])
  const [openNames, setOpenNames] = useState<ReadonlySet<string>>(new Set())
  const toggle = (name: string) =>
    setOpenNames((before) => {
      const after = new Set(before)
      if (!after.delete(name)) after.add(name)
      return after
    })
  return (
    <section className="timeline" aria-label="Timeline">
      <Axis timeline={timeline} />
      <div className="timeline-row is-run">
        <span className="timeline-name">Run</span>
        <Bars bars={timeline.run} timeline={timeline} />
      </div>
      {timeline.rows.length === 0 && <p className="muted timeline-empty">No step has begun yet.</p>}
      <VirtualRows
        label="Steps"
        count={timeline.rows.length}
        rowHeight={36}
        keyOf={(index) => timeline.rows[index]?.name ?? String(index)}
        render={(index) => {
          const row = timeline.rows[index]
          if (row === undefined) return null
          return (
            <StepRow
              row={row}
              timeline={timeline}
              logs={logs}
              isOpen={openNames.has(row.name)}
              onToggle={() => toggle(row.name)}
            />
          )
        }}
      />
      <Legend />
    </section>
  )
}

function Axis({ timeline: { from, to } }: { readonly timeline: Timeline }) {
  const ticks = ticksOf(to - from, useNarrow() ? 3 : 8).filter(({ at }) => at < LAST_TICK)
  return (
    <div className="timeline-axis" aria-hidden="true">
      {ticks.map(({ at, label }) => (
        <span key={label} className="tick" style={{ insetInlineStart: `${at * 100}%` }}>
          {label}
        </span>
      ))}
    </div>
  )
}

interface StepRowProps {
  readonly row: TimelineRow
  readonly timeline: Timeline
  readonly logs: readonly Log[]
  readonly isOpen: boolean
  readonly onToggle: () => void
}

function StepRow({ row, timeline, logs, isOpen, onToggle }: StepRowProps) {
  const own = logs.filter(({ stepName }) => stepName === row.name)
  const last = row.steps.at(-1)
  return (
    <>
      <button type="button" className="timeline-row" aria-expanded={isOpen} onClick={onToggle}>
        <span className="timeline-name">
          <span className="timeline-label" title={row.name}>
            {row.name}
          </span>
          {last?.kind !== 'run' && last?.kind != null && <span className="badge">{last.kind}</span>}
          {row.steps.length > 1 && <span className="badge">{row.steps.length} tries</span>}
          {own.length > 0 && <span className="muted small">{plural(own.length, 'line')}</span>}
        </span>
        <Bars bars={row.bars} timeline={timeline} />
      </button>
      {isOpen && <StepDetail steps={row.steps} logs={own} />}
    </>
  )
}

function Legend() {
  return (
    <ul className="legend small muted" aria-hidden="true">
      {(['working', 'done', 'failed', 'waiting', 'queued'] as const).map((kind) => (
        <li key={kind}>
          <span className={`bar is-${kind}`} /> {kind}
        </li>
      ))}
    </ul>
  )
}
