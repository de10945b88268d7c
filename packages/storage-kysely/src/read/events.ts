import type { EventRecord, EventStorage, EventTail, RunStatus } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import type { Reader } from './reader'
import { inTenant } from './reads'
import type { Rows } from '../dialect'
import { type Row, type SqlContext, statement, toEvent } from '../statement'
import { readPages } from './pages'
import { inTurns } from './turns'

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
  const tail = tailStatement(context)
  const heads = headsStatement(context)

  return {
    async getEvents(runId, options) {
      const { tenant = null, after: seen = 0, limit: most = Number.POSITIVE_INFINITY } = options
      const turned = inTurns(reader)
      const rows = await readPages(context, most, (last, limit) =>
        turned.read(ofRun.bind({ runId, tenant, afterSeq: Number(last?.['seq'] ?? seen), limit })),
      )
      return rows.map(toEvent)
    },
    async tail(cursors, limitEach) {
      const turned = inTurns(reader)
      const rows: Row[] = []
      for (const ranges of await rangesOf(turned, { cursors, limitEach })) {
        rows.push(...(await turned.read(tail.bind({ cursors: JSON.stringify(ranges) }))))
      }
      const tails = tailsOf(rows)
      return cursors.flatMap((cursor) => tails.get(cursor.runId) ?? [])
    },
  }

  /** What each statement reads. Where that might be many events, it is looked first who has how many. */
  async function rangesOf(reader: Reader, { cursors, limitEach }: Asked): Promise<readonly (readonly Range[])[]> {
    const all = cursors.map(({ runId, after }): Range => [runId, Math.max(after, 0), Math.max(after, 0) + limitEach])
    if (all.length * limitEach <= context.stretch) return all.length === 0 ? [] : [all]
    const rows = await reader.read(heads.bind({ cursors: JSON.stringify(all) }))
    const lastOf = new Map(rows.map((row) => [String(row['id']), Number(row['last_event_sequence'])]))
    const eventsOf = ([runId, after, upTo]: Range) => Math.max(Math.min(upTo, lastOf.get(runId) ?? after) - after, 0)
    return shared(
      all.map((range) => ({ range, events: eventsOf(range) })),
      context.stretch,
    )
  }
}

interface Asked {
  readonly cursors: readonly { readonly runId: string; readonly after: number }[]
  readonly limitEach: number
}

/** Of a run: behind this number, up to that one. */
type Range = readonly [runId: string, after: number, upTo: number]

interface Measured {
  readonly range: Range
  /** How many there were a moment ago. A range goes on behind them: whoever has ended since is shown with its last event. */
  readonly events: number
}

/** No more events to a list than `most`, unless one run has more; each run is in one of them. */
function shared(runs: readonly Measured[], most: number): readonly (readonly Range[])[] {
  const lists: Range[][] = []
  let room = 0
  for (const { range, events } of runs) {
    if (lists.length === 0 || events > room) {
      lists.push([])
      room = most
    }
    lists.at(-1)?.push(range)
    room -= events
  }
  return lists
}

/** Numbers are dense, so a range of them is a limit for each run. */
function tailStatement(context: SqlContext) {
  const { tables, dialect } = context
  const [id, after, upTo] = [
    dialect.field(sql`c.value`, 0, 'text'),
    dialect.field(sql`c.value`, 1, 'integer'),
    dialect.field(sql`c.value`, 2, 'integer'),
  ]
  const isNext = sql`e.run_id = r.id and e.seq > ${after} and e.seq <= ${upTo}`
  return statement<'cursors'>(context, (p) => {
    const runs = dialect.withRun(sql`${dialect.rowsOf(p('cursors'))} as c`, tables.runs, id)
    return sql`select r.id, r.status, r.last_event_sequence, ${dialect.columns('run_events', 'e')}
      from ${dialect.withEach(runs, tables.run_events, isNext)} where r.id = ${id} order by r.id, e.seq`
  })
}

/** How far the history of each goes. */
function headsStatement(context: SqlContext) {
  const { tables, dialect } = context
  return statement<'cursors'>(
    context,
    (p) => sql`select r.id, r.last_event_sequence from ${dialect.rowsOf(p('cursors'))} as c
      join ${tables.runs} as r on r.id = ${dialect.field(sql`c.value`, 0, 'text')}`,
  )
}

type Tail = EventTail & { readonly events: EventRecord[] }

function tailsOf(rows: Rows): ReadonlyMap<string, Tail> {
  const tails = new Map<string, Tail>()
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
  return tails
}
