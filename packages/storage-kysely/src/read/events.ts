import type { EventRecord, EventStorage, EventTail, RunStatus } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import type { Reader } from './reader'
import { inTenant } from './reads'
import { type SqlContext, statement, toEvent } from '../statement'

const NO_LIMIT = 2 ** 31

export function createEvents(context: SqlContext, reader: Reader): EventStorage {
  const { tables, dialect } = context
  const ofRun = statement<'runId' | 'tenant' | 'afterSeq' | 'limit'>(
    context,
    (
      p,
    ) => sql`select ${dialect.columns('run_events', 'e')} from ${tables.run_events} as e where e.run_id = ${p('runId')} and e.seq > ${p('afterSeq')}
      and exists (select 1 from ${tables.runs} as r where r.id = ${p('runId')} and ${inTenant(p)})
      order by e.seq limit ${p('limit')}`,
  )
  // Numbers are dense, so a range of them is a limit for each run.
  const after = dialect.field(sql`c.value`, 1, 'integer')
  const tail = statement<'cursors' | 'limit'>(
    context,
    (p) => sql`select r.id, r.status, r.last_event_sequence, ${dialect.columns('run_events', 'e')}
      from ${dialect.rowsOf(p('cursors'))} as c
      join ${tables.runs} as r on r.id = ${dialect.field(sql`c.value`, 0, 'text')}
      left join ${tables.run_events} as e on e.run_id = r.id and e.seq > ${after} and e.seq <= ${after} + ${p('limit')}
      order by r.id, e.seq`,
  )

  return {
    async getEvents(runId, options) {
      const { tenant = null, after: seen = 0, limit = NO_LIMIT } = options
      return (await reader.read(ofRun.bind({ runId, tenant, afterSeq: seen, limit }))).map(toEvent)
    },
    async tail(cursors, limitEach) {
      const positions = cursors.map((cursor) => [cursor.runId, Math.max(cursor.after, 0)])
      const rows = await reader.read(tail.bind({ cursors: JSON.stringify(positions), limit: limitEach }))
      const tails = new Map<string, EventTail & { readonly events: EventRecord[] }>()
      for (const row of rows) {
        const runId = String(row['id'])
        const known = tails.get(runId) ?? {
          runId,
          status: row['status'] as RunStatus,
          lastSeq: row['last_event_sequence'] as number,
          events: [],
        }
        tails.set(runId, known)
        if (row['seq'] !== null) known.events.push(toEvent(row))
      }
      return cursors.flatMap((cursor) => tails.get(cursor.runId) ?? [])
    },
  }
}
