import type { StoredEvent } from '@coji/durably-core'
import { useRunEvents } from '@coji/durably-react'
import { formatClock, formatMoment } from '../format'
import { Trouble } from '../parts/trouble'
import { VirtualRows } from '../parts/virtual-rows'

export function EventsView({ id }: { readonly id: string }) {
  const { events, isLoading, trouble } = useRunEvents(id)
  if (events.length === 0) {
    return (
      <>
        <Trouble error={trouble} />
        <p className="muted card-empty">
          {isLoading ? 'Reading …' : 'No events are stored: withLogPersistence() keeps them.'}
        </p>
      </>
    )
  }
  return (
    <>
      <Trouble error={trouble} />
      <VirtualRows
        label="Events"
        count={events.length}
        rowHeight={26}
        keyOf={(index) => String(events[index]?.seq ?? index)}
        render={(index) => {
          const event = events[index]
          return event === undefined ? null : <EventLine event={event} />
        }}
      />
    </>
  )
}

function EventLine({ event }: { readonly event: StoredEvent }) {
  const { type, seq, timestamp, runId: _runId, jobName: _jobName, ...rest } = event
  const { stepName, stepIndex: _index, payload: _payload, ...fields } = rest as Record<string, unknown>
  const isBad = type === 'run:fail' || type === 'step:fail' || type === 'run:timeout'
  return (
    <div className={`log-line ${isBad ? 'is-error' : ''}`}>
      <time dateTime={timestamp} title={formatMoment(timestamp)} className="muted">
        {formatClock(timestamp)}
      </time>
      <span className="event-seq muted">{seq}</span>
      <span className="log-message">
        <strong>{type}</strong> {typeof stepName === 'string' && stepName}
        {Object.keys(fields).length > 0 && <code className="log-data">{JSON.stringify(fields)}</code>}
      </span>
    </div>
  )
}
