import type { Run } from '@coji/durably'
import { formatAgo, formatCountdown, formatDuration, formatMoment, formatPercent } from '../format'
import { durationOf, msUntilDue, shareOf, shortId } from '../run-status'
import { StatusChip } from './status-chip'

interface RunItemProps {
  readonly run: Run
  readonly now: number
  readonly isSelected: boolean
  readonly onSelect: (id: string) => void
}

export function RunItem({ run, now, isSelected, onSelect }: RunItemProps) {
  return (
    <button
      type="button"
      className="run-item"
      aria-current={isSelected ? 'true' : undefined}
      onClick={() => onSelect(run.id)}
    >
      <strong className="run-item-name">{run.jobName}</strong>{' '}
      <code className="run-item-id muted">{shortId(run.id)}</code> <StatusChip run={run} />
      <span className="run-item-bar" aria-hidden="true">
        <span className={`fill status-${run.status}`} style={{ inlineSize: `${(shareOf(run) ?? 0) * 100}%` }} />
      </span>{' '}
      <span className="run-item-ago muted small" title={formatMoment(run.createdAt)}>
        {formatAgo(run.createdAt, now)}
      </span>{' '}
      <span className="run-item-end muted small">{endText(run, now)}</span>
    </button>
  )
}

function endText(run: Run, now: number): string {
  const ms = durationOf(run, now)
  if (run.finishedAt !== null) return ms === null ? '' : formatDuration(ms)
  const untilDue = msUntilDue(run, now)
  if (untilDue !== null) return `in ${formatCountdown(untilDue)}`
  return ms === null ? '' : formatPercent(shareOf(run) ?? 0)
}
