import type { EventRecord, EventStorage, EventTail, LogRecord, LogStorage } from '../port'
import type { Memory } from './memory'

/** The events of a run are dense from 1, so that the number is the place in the list. */
export function createEvents({ table }: Memory): EventStorage {
  const after = (events: readonly EventRecord[], seq: number, limit: number | undefined) => {
    const start = Math.max(0, seq)
    return events.slice(start, limit === undefined ? undefined : start + limit)
  }
  return {
    getEvents: async (runId, { tenant, after: seq = 0, limit }) =>
      after(table.find(runId, tenant)?.events ?? [], seq, limit),
    tail: async (cursors, limitEach) =>
      cursors.flatMap((cursor): EventTail[] => {
        const entry = table.find(cursor.runId)
        if (entry === undefined) return []
        const { status, lastEventSequence: lastSeq } = entry.record
        return [{ runId: cursor.runId, status, lastSeq, events: after(entry.events, cursor.after, limitEach) }]
      }),
  }
}

export function createLogs({ table }: Memory): LogStorage {
  return {
    getLogs: async (runId, { tenant, after, limit }) => {
      const logs = table.find(runId, tenant)?.logs ?? []
      const start = after === undefined ? 0 : placeAfter(logs, after)
      return logs.slice(start, limit === undefined ? undefined : start + limit)
    },
    findLogs: async (places) => {
      const wanted = new Set(places.map(({ id }) => id))
      const runIds = [...new Set(places.map(({ runId }) => runId))]
      return runIds.flatMap((runId) => table.find(runId)?.logs.filter(({ id }) => wanted.has(id)) ?? [])
    },
  }
}

/** Whoever follows a run asks for what comes after one of the last logs. */
function placeAfter(logs: readonly LogRecord[], id: string): number {
  for (let index = logs.length - 1; index >= 0; index--) if (logs[index]?.id === id) return index + 1
  return logs.length
}
