import type { AuditNote, Lead, MessagePurge } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import { createLeadLock, isLeading, type LeadName, leadValues } from './leads'
import { insertNote, type NoteName, noteValues } from '../write'
import { and, type ParameterName, type Sql, type SqlContext, statement, type WriteTarget } from '../statement'

type PurgeName = 'olderThanMs' | 'limit'
type Parameter<TName extends ParameterName> = (name: TName) => Sql

/** Removes delivered messages: as the leader, by hand, or by hand with a note of those that are removed. */
export function createMessagePurge(context: SqlContext) {
  const { tables, dialect, fences } = context
  const lock = createLeadLock(context)
  const old = (p: Parameter<PurgeName>) => {
    const before = dialect.nowPlus(sql`(- ${p('olderThanMs')})`)
    return sql`select id from ${tables.inbox} where processed_at <= ${before} order by processed_at limit ${p('limit')}`
  }
  const isOld = (p: Parameter<PurgeName>) => dialect.isAmong(sql`id`, old(p))
  const byHand = statement<PurgeName>(context, (p) => sql`delete from ${tables.inbox} where ${isOld(p)} returning id`)
  const byLeader = statement<PurgeName | LeadName>(context, (p) => {
    const guard = and(isOld(p), fences['purge.leadOfInbox'](isLeading(context, p)))
    return sql`delete from ${tables.inbox} where ${guard} returning id`
  })
  const note = statement<PurgeName | NoteName>(context, (p) => {
    const ids = dialect.nested(dialect.toJson(dialect.arrayOf(sql`m.id`)))
    const of = {
      ...{ tenant: sql`''`, target_kind: sql`'messages'`, target: sql`''` },
      before: dialect.record({ messages: ids }),
    }
    const from = sql`from (${old(p)} ${dialect.locked}) as m having count(*) > 0`
    return insertNote(context, p, { of, from })
  })
  // What the note says, and nothing that is old a moment later.
  const noted = statement<'noteId'>(context, (p) => {
    const ids = dialect.property(
      sql`(select a.before from ${tables.audit} as a where a.id = ${p('noteId')})`,
      'messages',
    )
    return sql`delete from ${tables.inbox}
      where ${dialect.isAmong(sql`id`, sql`select value from ${dialect.listOf(ids)}`)} returning id`
  })

  return async function purge(target: WriteTarget, lead: Lead | null, params: MessagePurge): Promise<number> {
    const { audit, ...which } = params
    const results = await target.write(listFor())
    return results.at(-1)?.length ?? 0

    function listFor() {
      if (lead !== null) return [...lock(lead), byLeader.bind({ ...leadValues(lead), ...which })]
      if (audit === undefined) return [byHand.bind(which)]
      const values = noteValues(audit)
      return [note.bind({ ...values, ...which }), noted.bind(values)]
    }
  }
}

/** What a job wants from now on is nothing. The note has what it wanted. */
export function createForget(context: SqlContext) {
  const { tables, dialect } = context
  const forget = statement<'jobName'>(
    context,
    (p) => sql`delete from ${tables.subscriptions} where job_name = ${p('jobName')}`,
  )
  const note = statement<'jobName' | NoteName>(context, (p) => {
    const wanted = dialect.objectOf(sql`w.type`, dialect.nested(sql`w.definition`))
    const of = {
      ...{ tenant: sql`''`, target_kind: sql`'job'`, target: p('jobName') },
      before: dialect.record({ on: dialect.nested(dialect.toJson(wanted)) }),
    }
    const from = sql`from (select type, definition from ${tables.subscriptions}
      where job_name = ${p('jobName')} ${dialect.locked}) as w having count(*) > 0`
    return insertNote(context, p, { of, from })
  })

  return async function forgetJob(target: WriteTarget, jobName: string, audit?: AuditNote): Promise<void> {
    const noting = audit === undefined ? [] : [note.bind({ ...noteValues(audit), jobName })]
    await target.write([...noting, forget.bind({ jobName })])
  }
}
