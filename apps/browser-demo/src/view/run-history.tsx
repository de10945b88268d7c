import { useMemo, useState } from 'react'
import type { RunDetail } from '../demo-state'
import { formatClock, formatCount } from '../format'
import { historyLines } from '../history-lines'

const FEW = 100

/** Logs and events of the run, newest first. */
export function RunHistory({ detail }: { readonly detail: RunDetail }) {
  const [showsAll, setShowsAll] = useState(false)
  const { events, logs } = detail
  const lines = useMemo(() => historyLines({ ...detail, events, logs }), [detail, events, logs])
  const shown = showsAll ? lines : lines.slice(0, FEW)
  return (
    <section className="card history" aria-label="Log">
      <h3>
        Log <span className="muted">{formatCount(lines.length)}</span>
      </h3>
      {lines.length === 0 && <p className="muted empty">Nothing has happened yet.</p>}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard. */}
      <ol className="log-lines" tabIndex={0} aria-label="Log lines, newest first">
        {shown.map(({ key, timestamp, level, text }) => (
          <li key={key} className={`log-line ${level}`}>
            <time dateTime={timestamp}>{formatClock(timestamp)}</time>
            <span>
              {(level === 'warn' || level === 'error') && <strong>{level}: </strong>}
              {text}
            </span>
          </li>
        ))}
      </ol>
      {shown.length < lines.length && (
        <button type="button" className="quiet" onClick={() => setShowsAll(true)}>
          Show all {formatCount(lines.length)} lines
        </button>
      )}
    </section>
  )
}
