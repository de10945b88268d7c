import type { Statistics } from '@coji/durably-core'
import { formatCount, formatDuration, formatMoment } from '../format'
import { endedIn, failureShare } from './series'

/** The numbers of the whole time. */
export function Totals({ statistics: { total, countedUntil } }: { readonly statistics: Statistics }) {
  const share = failureShare(total)
  const numbers = [
    ['Runs ended', formatCount(endedIn(total))],
    ['Failed', share === null ? '–' : `${Number((share * 100).toFixed(share < 0.1 ? 1 : 0))} %`],
    ['Duration, p95', total.duration === null ? '–' : `≈ ${formatDuration(total.duration.p95)}`],
    ['Queue latency, p95', total.queueLatency === null ? '–' : `≈ ${formatDuration(total.queueLatency.p95)}`],
  ]
  return (
    <>
      <dl className="totals">
        {numbers.map(([name, number]) => (
          <div key={name} className="card">
            <dt className="small muted">{name}</dt>
            <dd>{number}</dd>
          </div>
        ))}
      </dl>
      {countedUntil !== null && (
        <p className="small muted">Counted are runs that ended until {formatMoment(countedUntil)}.</p>
      )}
    </>
  )
}
