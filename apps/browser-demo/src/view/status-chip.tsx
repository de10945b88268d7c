import type { Run, RunStatus } from '@coji/durably'
import { statusText } from '../run-status'

const CLOCK = 'M8 2.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 1 0 0-11M8 5v3l2 1.5'

const SHAPES: Readonly<Record<RunStatus, string>> = {
  pending: CLOCK,
  assigned: CLOCK,
  orphaned: CLOCK,
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
