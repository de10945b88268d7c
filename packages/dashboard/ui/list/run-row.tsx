import type { Run } from '@coji/durably-core'
import { memo } from 'react'
import { Link } from 'wouter'
import { formatDuration, formatElapsed, shortId } from '../format'
import { Moment } from '../parts/moment'
import { StatusChip } from '../parts/status-chip'
import { durationOf, shareOf } from '../run-status'
import { useNow } from '../use-now'

interface RunRowProps {
  readonly run: Run
  readonly isSelected: boolean
  /** Nobody may do anything with a selection. */
  readonly canSelect: boolean
  readonly onToggle: (id: string) => void
}

export const RunRow = memo(function RunRow({ run, isSelected, canSelect, onToggle }: RunRowProps) {
  return (
    <div className="run-row" data-selected={isSelected || undefined}>
      <span className="cell-select">
        {canSelect && (
          <input
            type="checkbox"
            checked={isSelected}
            onChange={() => onToggle(run.id)}
            aria-label={`Select run ${shortId(run.id)} of ${run.jobName}`}
          />
        )}
      </span>
      <span className="cell-status">
        <StatusChip run={run} />
      </span>
      <span className="cell-job">
        <Link href={`/runs/${run.id}`} className="run-link" data-run={run.id}>
          <span className="job-name">{run.jobName}</span> <code className="muted">{shortId(run.id)}</code>
        </Link>
        <Labels labels={run.labels} />
      </span>
      <span className="cell-note muted">
        <Note run={run} />
      </span>
      <span className="cell-duration">
        <Duration run={run} />
      </span>
      <span className="cell-created muted">
        <Moment at={run.createdAt} />
      </span>
    </div>
  )
})

function Labels({ labels }: Pick<Run, 'labels'>) {
  return Object.entries(labels)
    .slice(0, 3)
    .map(([name, value]) => (
      <span key={name} className="label">
        {name}={value}
      </span>
    ))
}

/** What is worth to be said of it in a line. */
function Note({ run }: { readonly run: Run }) {
  const share = shareOf(run)
  if (run.status === 'running' && share !== null) {
    return (
      <span className="note-progress">
        <progress value={share} aria-label="Progress" />
        {run.progress?.message ?? `${Math.floor(share * 100)} %`}
      </span>
    )
  }
  if (run.error !== null) return <span className="note-error">{run.error}</span>
  if (run.waitingFor?.kind === 'steps') return `for ${run.waitingFor.steps.join(', ')}`
  if (run.waitingFor?.kind === 'unpark') return run.waitingFor.reason
  return run.status === 'running' ? (run.progress?.message ?? null) : null
}

function Duration({ run }: { readonly run: Run }) {
  const isRunning = run.startedAt !== null && run.finishedAt === null
  const duration = durationOf(run, useNow(isRunning))
  if (duration === null) return <span className="muted">–</span>
  return isRunning ? formatElapsed(duration) : formatDuration(duration)
}
