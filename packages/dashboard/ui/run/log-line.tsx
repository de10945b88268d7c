import type { Log } from '@coji/durably-core'
import { formatClock, formatMoment } from '../format'

interface LogLineProps {
  readonly log: Log
  /** It stands below its step already. */
  readonly isWithin?: boolean
}

export function LogLine({ log: { timestamp, level, message, data, stepName }, isWithin = false }: LogLineProps) {
  return (
    <div className={`log-line is-${level}`}>
      <time dateTime={timestamp} title={formatMoment(timestamp)} className="muted">
        {formatClock(timestamp)}
      </time>
      <span className="log-level">{level}</span>
      <span className="log-message">
        {!isWithin && stepName !== null && <span className="muted">{stepName}: </span>}
        {message}
        {data !== undefined && data !== null && <code className="log-data">{JSON.stringify(data)}</code>}
      </span>
    </div>
  )
}
