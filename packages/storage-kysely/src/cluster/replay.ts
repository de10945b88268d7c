import type { AuditNote, MessagePlace, MessageReplay, ReplayAnswer } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import { inTurns, lastPlace, readEntries } from '../read'
import {
  and,
  type ParameterName,
  rowsOf,
  type Sql,
  type SqlContext,
  statement,
  type StatementTarget,
} from '../statement'
import { insertNote, type NoteName, noteValues } from '../write'
import { listingOf } from './message-listing'

/** Looks at some messages, then sends out those that are still as they were seen. */
export function createReplay(context: SqlContext) {
  const { tables, dialect, fences } = context
  const seen = (p: Parameter<'messages'>) => rowsOf(context, p('messages'), ['id', 'round'])
  // Both lists are gone through once, not once for each message.
  const guard = (p: Parameter<'messages'>) =>
    and(
      dialect.isAmong(sql`m.id`, sql`select t.id from ${seen(p)}`),
      fences['replay.round'](sql`select t.id || '/' || t.round from ${seen(p)}`, dialect),
    )
  const again = statement<'messages'>(
    context,
    (p) => sql`update ${tables.inbox} as m set processed_at = null, wanted = 0, round = m.round + 1
      where ${guard(p)} returning id`,
  )
  const noted = statement<'messages' | 'tenant' | 'query' | NoteName>(context, (p) => {
    const of = { tenant: p('tenant'), target_kind: sql`'messages'`, target: sql`''`, before: sql`null` }
    const after = dialect.record({ messages: sql`count(*)`, of: dialect.nested(p('query')) })
    const from = sql`from (select 1 from ${tables.inbox} as m where ${guard(p)} ${dialect.locked}) as m having count(*) > 0`
    return insertNote(context, p, { of: { ...of, after }, from })
  })

  return async function replay(target: StatementTarget, batch: MessageReplay): Promise<ReplayAnswer> {
    const { query, limit, cursor, audit } = batch
    const listing = listingOf(context, { ...query, isProcessed: true })
    const lister = { context, reader: inTurns(target), listing }
    const until = cursor === undefined ? await lastPlace(lister) : placeOf(cursor.until)
    if (until === undefined) return { replayed: 0, next: null }
    const after = cursor === undefined ? undefined : placeOf(cursor.after)
    const { found, last } = await readEntries(lister, { after, until, limit, columns: sql`m.id, m.round` })
    const messages = JSON.stringify(found.map((row, n) => ({ n, id: row['id'], round: row['round'] })))
    const replayed = found.length === 0 ? 0 : await send(target, { messages, audit, query })
    return { replayed, next: last === undefined ? null : { after: cursorOf(last), until: cursorOf(until) } }
  }

  async function send(target: StatementTarget, { messages, audit, query }: Found): Promise<number> {
    const of = { messages, tenant: query.tenant ?? '', query: JSON.stringify(query) }
    const note = audit === undefined ? [] : [noted.bind({ ...noteValues(audit), ...of })]
    const results = await target.write([...note, again.bind({ messages })])
    return results.at(-1)?.length ?? 0
  }
}

type Parameter<TName extends ParameterName> = (name: TName) => Sql

interface Found {
  readonly messages: string
  readonly query: MessageReplay['query']
  readonly audit: AuditNote | undefined
}

type Place = readonly [createdAt: string, id: string]

function placeOf({ createdAt, id }: MessagePlace): Place {
  return [createdAt, id]
}

function cursorOf([createdAt, id]: Place): MessagePlace {
  return { createdAt, id }
}
