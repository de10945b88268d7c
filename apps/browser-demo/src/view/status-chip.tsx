import type { Run, RunStatus } from '@coji/durably'
import { statusText } from '../run-status'

const SHAPES: Readonly<Record<RunStatus, string>> = {
  pending: 'M8 3.5v4.5l3 2',
  assigned: 'M8 3.5v4.5l3 2',
  orphaned: 'M8 3.5v4.5l3 2',
  running: 'M6 4.5v7l5.5-3.5z',
  completed: 'M4 8.5l2.7 2.7L12 5.5',
  failed: 'M5 5l6 6M11 5l-6 6',
  timed_out: 'M8 3.5v5M8 11.5v.5',
  cancelled: 'M4.5 8h7',
}

/** The status by word, shape and colour. */
export function StatusChip({ run }: { readonly run: Run }) {
  return (
    <span className={`chip status-${run.status}`}>
      <svg viewBox="0 0 16 16" aria-hidden="true" focusable="false">
        <path d={SHAPES[run.status]} />
      </svg>
      {statusText(run)}
    </span>
  )
}
