import type { Delivery, DeliveryAnswer, Lead } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import { gatheredRows, gatherStatement } from './gathered'
import { createLeadLock, isLeading, type LeadName, leadValues } from './leads'
import { and, rowsOf, type SqlContext, statement, valueOf, type WriteTarget } from '../statement'
import { createRunList } from './run-list'

/** Marks many messages as delivered and creates their runs: the runs of those that it marked. */
export function createDeliver(context: SqlContext) {
  const { tables, dialect, fences } = context
  const lock = createLeadLock(context)
  const mark = statement<'deliveries' | 'deliverToken' | LeadName>(context, (p) => {
    const value = valueOf(context, 't')
    const isAsRead = fences['deliver.round'](value('round'))
    const guard = and(sql`m.id = ${value('messageId')}`, isAsRead, fences['deliver.lead'](isLeading(context, p)))
    return sql`update ${tables.inbox} as m set processed_at = ${dialect.now}, wanted = ${value('wanted')},
      deliver_token = ${p('deliverToken')} from ${rowsOf(context, p('deliveries'), DELIVERY_VALUES)}
      where ${guard} returning id`
  })
  const gather = gatherStatement(context)
  const runs = createRunList<'deliverToken'>(
    context,
    (cause, p) => sql`(select m.deliver_token from ${tables.inbox} as m where m.id = ${cause}) = ${p('deliverToken')}`,
  )

  return async function deliver(
    target: WriteTarget,
    lead: Lead,
    deliveries: readonly Delivery[],
  ): Promise<DeliveryAnswer[]> {
    const all = deliveries.flatMap((delivery) => delivery.runs.map((run) => ({ run, cause: delivery.messageId })))
    // Of this write alone, so that what an earlier one marked is not taken for marked by it.
    const deliverToken = crypto.randomUUID()
    const locks = lock(lead)
    const gathered = gatheredRows(deliveries)
    const results = await target.write([
      ...locks,
      mark.bind({ ...leadValues(lead), deliverToken, deliveries: JSON.stringify(deliveries.map(valuesOf)) }),
      ...runs.bind(all, { deliverToken }),
      ...(gathered.length === 0 ? [] : [gather.bind({ deliverToken, gathered: JSON.stringify(gathered) })]),
    ])
    const [marked = [], inserted = []] = results.slice(locks.length)
    const created = all.length === 0 ? [] : inserted
    const [markedIds, createdIds] = [marked, created].map((rows) => new Set(rows.map(({ id }) => id)))
    return deliveries.map(({ messageId, runs: wanted }) => ({
      kept: markedIds?.has(messageId) === true,
      created: wanted.filter(({ id }) => createdIds?.has(id)).map(({ id }) => id),
    }))
  }
}

const DELIVERY_VALUES = ['messageId', 'round', 'wanted'] as const

function valuesOf({ messageId, round, wanted }: Delivery) {
  return { messageId, round, wanted }
}
