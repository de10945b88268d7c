import { decodeValue } from '../base'
import type { Engine } from '../engine'
import type { EventRecord, EventTemplate, LogPlace, LogRecord, NewLog } from '../port'
import { findLogs } from './archived-logs'

const TYPE = 'log:write'

/** What is stored of the event is where its log is. */
export function toLogTemplate({ id }: NewLog): EventTemplate {
  return { type: TYPE, payload: JSON.stringify({ logId: id }) }
}

/** The events with their logs in place, for which one more query is sent if there are any. */
export async function withLogs(engine: Engine, events: readonly EventRecord[]): Promise<readonly EventRecord[]> {
  const places = events.flatMap((event) => placeOf(event) ?? [])
  if (places.length === 0 || engine.storage.logs === undefined) return events
  const logs = await findLogs(engine, places)
  const byId = new Map(logs.map((log) => [log.id, log]))
  return events.map((event) => {
    const place = placeOf(event)
    return place === null ? event : { ...event, payload: toPayload(byId.get(place.id)) }
  })
}

function placeOf({ type, runId, payload }: EventRecord): LogPlace | null {
  if (type !== TYPE) return null
  const { logId } = decodeValue(payload) as { readonly logId?: string }
  return logId === undefined ? null : { runId, id: logId }
}

/** Somebody who removes logs by hand leaves their events. */
function toPayload(log: LogRecord | undefined): string {
  if (log === undefined) return JSON.stringify({ stepName: null, level: 'info', message: '[removed]' })
  const { stepName, level, message, data } = log
  return JSON.stringify({ stepName, level, message, data: decodeValue(data) })
}
