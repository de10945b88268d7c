import type { Run } from '@coji/durably-core'
import { statusOf, type Tone } from '../run-status'

export function StatusChip({ run }: { readonly run: Run }) {
  const { label, tone } = statusOf(run)
  return (
    <span className={`chip is-${tone}`}>
      <StatusIcon tone={tone} status={run.status} />
      {label}
    </span>
  )
}

/** A shape for each, so that the colour is not needed to tell them apart. */
function StatusIcon({ tone, status }: { readonly tone: Tone; readonly status: Run['status'] }) {
  return (
    <svg className="chip-icon" viewBox="0 0 12 12" aria-hidden="true">
      {status === 'completed' && <path d="M2.5 6.5 5 9l4.5-6" />}
      {tone === 'bad' && <path d="m3 3 6 6M9 3 3 9" />}
      {status === 'running' && <path className="spinner" d="M6 1.5A4.5 4.5 0 1 1 1.5 6" />}
      {status === 'cancelled' && <path d="M2.5 6h7" />}
      {['pending', 'assigned', 'orphaned'].includes(status) && <circle cx="6" cy="6" r="3.5" />}
    </svg>
  )
}
