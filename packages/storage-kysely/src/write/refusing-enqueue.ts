import { type ConflictError, type EnqueueAnswer, keyConflict, type NewRun } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import type { Rows } from '../dialect'
import { createGroup } from './group-enqueue'
import { rowsOf, runColumns, type SqlContext, statement, toRun, valueOf, type WriteTarget } from '../statement'

/** `null`: somebody deleted what had the keys, and it is to be tried again. Nothing is created then, nor after a conflict. */
type RefusingEnqueue = (
  target: WriteTarget,
  runs: readonly NewRun[],
) => Promise<readonly EnqueueAnswer[] | ConflictError | null>

const KEY_VALUES = [
  'id',
  'tenant',
  'jobName',
  'idempotencyKey',
  'payload',
  'isRefusing',
  'scheduleId',
  'scheduledFor',
] as const

/**
 * For Postgres: creates runs of which a key may refuse the whole list. They are created, compared with what has their keys,
 * and taken back before anybody has seen them. An error would take them back as well, and show their payloads in the
 * server's log.
 */
export function createRefusingEnqueue(context: SqlContext): RefusingEnqueue {
  const create = createGroup(context)
  const settle = settleStatement(context)
  return async function enqueueOrRefuse(target, runs) {
    const wanted = runs.map(
      ({ id, tenant, jobName, idempotencyKey, onConflict, scheduleId, scheduledFor, payload }, n) => ({
        ...{ n, id, tenant, jobName, idempotencyKey, payload, scheduleId, scheduledFor },
        isRefusing: onConflict === 'reject' ? 1 : 0,
      }),
    )
    const keys = { runs: JSON.stringify(wanted) }
    const [, rows = []] = await target.write([create(runs, target), settle.bind(keys)])
    const conflict = rows.find((row) => row['isConflict'] === true)
    if (conflict !== undefined) {
      const [run, holder] = [runs[Number(conflict['n'])] as NewRun, toRun(conflict)]
      return keyConflict(run, runs.find(({ id }) => id === holder.id) ?? holder)
    }
    const byRun = new Map<number, Rows[number]>()
    for (const row of rows) {
      const n = Number(row['n'])
      if (!byRun.has(n) || row['id'] === runs[n]?.id) byRun.set(n, row)
    }
    const answers = runs.flatMap((run, n): EnqueueAnswer[] => {
      const row = byRun.get(n)
      return row === undefined ? [] : [{ run: toRun(row), created: row['id'] === run.id }]
    })
    return answers.length === runs.length ? answers : null
  }
}

const HAS_KEY = sql`r.tenant = t.tenant and r.job_name = t."jobName" and r.idempotency_key = t."idempotencyKey"`

/** A list that is sent again finds runs of its own that others have seen. Savepoints have later numbers than theirs. */
const BY_THIS_TRANSACTION = sql`age(r.xmin) <= 0`

/**
 * Takes back what was created in this transaction if a key is taken otherwise, and tells what there is. What has the keys
 * is not locked: its worker would have to wait for the transaction of the caller. If it is deleted after it kept a run
 * from being created, it is not found here.
 */
function settleStatement(context: SqlContext) {
  const { tables, dialect } = context
  const hasInstant = sql`r.schedule_id = t."scheduleId" and r.scheduled_for = t."scheduledFor"`
  const isSame = dialect.isSameJson(sql`r.payload`, valueOf(context, 't')('payload'))
  return statement<'runs'>(
    context,
    (p) => sql`with wanted as materialized (select t.* from ${rowsOf(context, p('runs'), KEY_VALUES)}),
      found as materialized (
        select t.n, r.id from wanted as t join ${tables.runs} as r on r.id = t.id
        union select t.n, r.id from wanted as t join ${tables.runs} as r on ${HAS_KEY}
        union select t.n, r.id from wanted as t join ${tables.runs} as r on ${hasInstant}),
      conflict as materialized (
        select t.n, r.id from wanted as t join ${tables.runs} as r on ${HAS_KEY}
        where t."isRefusing" = 1 and r.id <> t.id and not (${isSame})),
      gone as (
        delete from ${tables.runs} as r using wanted as t where r.id = t.id and ${BY_THIS_TRANSACTION} and (
          exists (select 1 from conflict) or exists (select 1 from wanted as w where w.n not in (select f.n from found as f)))
        returning r.id),
      gone_labels as (delete from ${tables.run_labels} as l using gone as g where l.run_id = g.id),
      gone_events as (delete from ${tables.run_events} as e using gone as g where e.run_id = g.id)
      select f.n, c.id is not null as "isConflict", ${runColumns(context, 'r')}
      from found as f join ${tables.runs} as r on r.id = f.id left join conflict as c on c.n = f.n and c.id = f.id
      order by f.n`,
  )
}
