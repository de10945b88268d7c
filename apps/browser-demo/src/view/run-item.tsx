import type { Run } from '@coji/durably'
import { formatAgo, formatDuration, formatMoment, formatPercent } from '../format'
import { shareOf, shortId } from '../run-status'
import { StatusChip } from './status-chip'

interface RunItemProps {
  readonly run: Run
  readonly now: number
  readonly isSelected: boolean
  readonly onSelect: (id: string) => void
}

export function RunItem({ run, now, isSelected, onSelect }: RunItemProps) {
  const share = shareOf(run)
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
        <span className={`fill status-${run.status}`} style={{ inlineSize: `${(share ?? 0) * 100}%` }} />
      </span>{' '}
      <span className="run-item-ago muted small" title={formatMoment(run.createdAt)}>
        {formatAgo(run.createdAt, now)}
      </span>{' '}
      <span className="run-item-end muted small">{endText(run, share)}</span>
    </button>
  )
}

function endText({ status, startedAt, finishedAt }: Run, share: number | null): string {
  if (startedAt !== null && finishedAt !== null) return formatDuration(Date.parse(finishedAt) - Date.parse(startedAt))
  return status === 'running' || startedAt !== null ? formatPercent(share ?? 0) : ''
}
