import type { DebouncedRun, EnqueueAnswer } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import { bindNewRun, newRunStatements } from './new-run'
import { and, runColumns, type Sql, type SqlContext, statement, type StatementTarget, toRun } from '../statement'

export type EnqueueDebounced = (target: StatementTarget, debounced: DebouncedRun) => Promise<EnqueueAnswer>

export type KeyName = 'id' | 'tenant' | 'jobName' | 'key'
type PutOffName = KeyName | 'payload' | 'waitMs' | 'maxWaitMs'

/** More may come to it. */
export const HAS_NEVER_BEGUN = sql`r.status = 'pending' and r.attempt = 1 and r.started_at is null and r.waiting_for is null`

/**
 * The row of the key is written first: whoever else has the same key waits for the end of this transaction, and each
 * statement after it sees what was committed before.
 */
export function takeKeyStatement(context: SqlContext) {
  return statement<KeyName>(
    context,
    (p) => sql`insert into ${context.tables.debounced_runs} as d (tenant, job_name, key, run_id)
      values (${p('tenant')}, ${p('jobName')}, ${p('key')}, ${p('id')})
      on conflict (tenant, job_name, key) do update set run_id = d.run_id`,
  )
}

export function createDebounce(context: SqlContext): EnqueueDebounced {
  const { tables } = context
  const take = takeKeyStatement(context)
  const putOff = putOffStatement(context)
  const create = newRunStatements<'key'>(context, {
    guard: null,
    unless: (p) => sql`select 1 from ${tables.debounced_runs} as d join ${tables.runs} as r on r.id = d.run_id
      where ${isOfKey(p)} and ${HAS_NEVER_BEGUN}`,
  })
  const point = statement<KeyName>(
    context,
    (p) => sql`update ${tables.debounced_runs} as d set run_id = ${p('id')} where ${isOfKey(p)}
      and exists (select 1 from ${tables.runs} as own where own.id = ${p('id')})
      and not exists (select 1 from ${tables.runs} as r where r.id = d.run_id and ${HAS_NEVER_BEGUN})`,
  )
  const look = statement<KeyName>(
    context,
    (p) => sql`select ${runColumns(context, 'r')} from ${tables.runs} as r where r.id = ${p('id')}
      or r.id = (select d.run_id from ${tables.debounced_runs} as d where ${isOfKey(p)})`,
  )

  return async function enqueueDebounced(target, { run, key, waitMs, maxWaitMs }) {
    const { id, tenant, jobName, payload } = run
    const own = { id, tenant, jobName, key }
    const results = await target.write([
      take.bind(own),
      putOff.bind({ ...own, payload, waitMs, maxWaitMs }),
      ...bindNewRun(create, run, { extra: { key }, firstId: null }),
      point.bind(own),
      look.bind(own),
    ])
    const rows = results.at(-1) ?? []
    const stored = toRun((rows.find((row) => row['id'] === id) ?? rows[0]) as (typeof rows)[number])
    return { run: stored, created: stored.id === id }
  }
}

export function isOfKey(p: (name: 'tenant' | 'jobName' | 'key') => Sql): Sql {
  return and(sql`d.tenant = ${p('tenant')}`, sql`d.job_name = ${p('jobName')}`, sql`d.key = ${p('key')}`)
}

/** One that is sent again because its answer was lost is not to overtake a run that has begun with it. */
function putOffStatement(context: SqlContext) {
  const { tables, dialect } = context
  return statement<PutOffName>(context, (p) => {
    const wanted = dialect.nowPlus(p('waitMs'))
    const latest = dialect.plus(sql`r.created_at`, p('maxWaitMs'))
    const isOwn = sql`r.id = ${p('id')}`
    return sql`update ${tables.runs} as r set payload = ${p('payload')}, version = r.version + 1, updated_at = ${dialect.now},
        available_at = case when ${p('maxWaitMs')} is null then ${wanted} else ${dialect.least(wanted, latest)} end
      where r.id = (select d.run_id from ${tables.debounced_runs} as d where ${isOfKey(p)}) and ${HAS_NEVER_BEGUN}
        and (${isOwn} or not exists (select 1 from ${tables.runs} as own where own.id = ${p('id')}))`
  })
}
