import { type Lead, LEADER, LEADERLESS_MS, type LeadParams, type LeadRecord } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import type { Reader } from '../read'
import type { LeadersTable } from '../dialect'
import { and, type Sql, type SqlContext, type SqlValue, statement, type WriteTarget } from '../statement'

export type LeadName = 'leadName' | 'leaderId' | 'epoch'
type Parameter = (name: LeadName) => Sql

export function leadValues({ name, workerId, epoch }: Lead): Record<LeadName, SqlValue> {
  return { leadName: name, leaderId: workerId, epoch }
}

/** Whether nobody else has taken the lead since. */
export function isLeading({ tables }: SqlContext, p: Parameter): Sql {
  return sql`exists (select 1 from ${tables.leaders} as l where ${isCurrent(p)})`
}

/** Whether there is a leader for all who place runs, or was one a while ago. */
export function wasLed({ tables, dialect }: SqlContext): Sql {
  return sql`exists (select 1 from ${tables.leaders} as l where l.name = ${sql.lit(LEADER)}
    and l.lead_until > ${dialect.nowPlus(sql.lit(-LEADERLESS_MS))})`
}

/** Keeps others from taking the lead before this transaction is over. On SQLite there is one writer anyway. */
export function createLeadLock(context: SqlContext) {
  const lock = statement<LeadName>(
    context,
    (p) => sql`select 1 from ${context.tables.leaders} as l where ${isCurrent(p)} for share`,
  )
  return (lead: Lead) => (context.dialect.hasOneWriter ? [] : [lock.bind(leadValues(lead))])
}

export function createLeads(context: SqlContext) {
  const { tables, dialect, fences } = context
  const take = statement<'leadName' | 'leaderId' | 'ttlMs'>(context, (p) => {
    const isOwn = sql`l.worker_id = ${p('leaderId')}`
    const until = dialect.nowPlus(p('ttlMs'))
    return sql`insert into ${tables.leaders} as l (name, worker_id, epoch, lead_until)
      values (${p('leadName')}, ${p('leaderId')}, 1, ${until})
      on conflict (name) do update set worker_id = excluded.worker_id, lead_until = excluded.lead_until,
        epoch = l.epoch + case when ${isOwn} and l.lead_until > ${dialect.now} then 0 else 1 end
      where ${isOwn} or ${fences['lead.over'](dialect)} returning epoch`
  })
  const resign = statement<LeadName>(
    context,
    (p) => sql`update ${tables.leaders} as l set lead_until = ${dialect.now} where ${isCurrent(p)}`,
  )
  const get = statement<'leadName'>(
    context,
    (
      p,
    ) => sql`select ${dialect.columns('leaders', 'l')}, case when l.lead_until <= ${dialect.now} then 1 else 0 end as is_over
      from ${tables.leaders} as l where l.name = ${p('leadName')}`,
  )
  return {
    async get(reader: Reader, name: string): Promise<LeadRecord | null> {
      const [row] = await reader.read(get.bind({ leadName: name }))
      if (row === undefined) return null
      const { worker_id: workerId, epoch, lead_until: until } = row as unknown as LeadersTable
      return { name, workerId, epoch: Number(epoch), until, isOver: row['is_over'] === 1 }
    },
    async take(target: WriteTarget, { name, workerId, ttlMs }: LeadParams): Promise<Lead | null> {
      const [rows = []] = await target.write([take.bind({ leadName: name, leaderId: workerId, ttlMs })])
      const epoch = rows[0]?.['epoch']
      return epoch === undefined ? null : { name, workerId, epoch: Number(epoch) }
    },
    async resign(target: WriteTarget, lead: Lead): Promise<void> {
      await target.write([resign.bind(leadValues(lead))])
    },
  }
}

function isCurrent(p: Parameter): Sql {
  return and(sql`l.name = ${p('leadName')}`, sql`l.worker_id = ${p('leaderId')}`, sql`l.epoch = ${p('epoch')}`)
}
