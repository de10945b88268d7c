import type { BatchedRun, EnqueueAnswer } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import { HAS_NEVER_BEGUN, isOfKey, type KeyName, takeKeyStatement } from './debounce'
import { bindNewRun, newRunStatements } from './new-run'
import {
  and,
  runColumns,
  type Row,
  type Sql,
  type SqlContext,
  statement,
  type StatementTarget,
  toRun,
} from '../statement'

export type JoinBatch = (target: StatementTarget, batched: BatchedRun) => Promise<EnqueueAnswer>

type Parameter<TName extends string> = (name: TName) => Sql

/** Where the row of a key has a job, that of a trigger which has come to the run of another one has none. */
const NO_JOB = sql.lit('')

/**
 * After the row of the key its run is locked, so that it does not begin meanwhile. The key leaves one that has begun, or has no
 * room; what it has then is either joined or created.
 */
export function createJoinBatch(context: SqlContext): JoinBatch {
  const { tables, dialect } = context
  const take = takeKeyStatement(context)
  const ofKey = (p: Parameter<KeyName>) => sql`(select d.run_id from ${tables.debounced_runs} as d where ${isOfKey(p)})`
  const hold = statement<KeyName>(
    context,
    (p) => sql`select 1 from ${tables.runs} as r where r.id = ${ofKey(p)} ${dialect.locked}`,
  )
  const leave = statement<KeyName | 'payload' | 'max' | 'maxBytes'>(
    context,
    (p) => sql`update ${tables.debounced_runs} as d set run_id = ${p('id')}
      where ${isOfKey(p)} and ${isNew(context, p)} and not exists (
        select 1 from ${tables.runs} as r where r.id = d.run_id and ${HAS_NEVER_BEGUN} and ${hasRoom(context, p)})`,
  )
  const append = appendStatement(context, ofKey)
  const note = statement<KeyName>(
    context,
    (p) => sql`insert into ${tables.debounced_runs} (tenant, job_name, key, run_id)
      select d.tenant, ${NO_JOB}, ${p('id')}, d.run_id from ${tables.debounced_runs} as d
      where ${isOfKey(p)} and d.run_id <> ${p('id')} and ${isNew(context, p)} on conflict do nothing`,
  )
  const create = newRunStatements<'id'>(context, { guard: null, unless: (p) => joined(context, p) })
  const look = statement<'id' | 'tenant'>(
    context,
    (p) => sql`select ${runColumns(context, 'r')} from ${tables.runs} as r
      where r.id = coalesce((${joined(context, p)}), ${p('id')})`,
  )

  return async function joinBatch(target, { run, key, max, maxBytes }) {
    const { id, tenant, jobName, payload } = run
    const own = { id, tenant, jobName, key }
    const results = await target.write([
      take.bind(own),
      ...(dialect.hasOneWriter ? [] : [hold.bind(own)]),
      leave.bind({ ...own, payload, max, maxBytes }),
      append.bind({ ...own, payload, max }),
      note.bind(own),
      ...bindNewRun(create, run, { extra: { id }, firstId: null }),
      look.bind(own),
    ])
    const stored = toRun(results.at(-1)?.[0] as Row)
    return { run: stored, created: stored.id === id }
  }
}

function appendStatement(context: SqlContext, ofKey: (p: Parameter<KeyName>) => Sql) {
  const { tables, dialect } = context
  return statement<KeyName | 'payload' | 'max'>(context, (p) => {
    const isFull = sql`(${entries(context, sql`r.payload`)}) + json_array_length(${p('payload')}) >= ${p('max')}`
    return sql`update ${tables.runs} as r set payload = ${dialect.toJson(together(context, p))},
        version = r.version + 1, updated_at = ${dialect.now},
        available_at = case when ${isFull} then ${dialect.least(dialect.now, sql`r.available_at`)} else r.available_at end
      where r.id = ${ofKey(p)} and ${isNew(context, p)}`
  })
}

/** It has neither created a run nor come to one: it is not sent again. */
function isNew(context: SqlContext, p: Parameter<'id' | 'tenant'>): Sql {
  return and(
    sql`not exists (select 1 from ${context.tables.runs} as own where own.id = ${p('id')})`,
    sql`not exists (${joined(context, p)})`,
  )
}

function joined({ tables }: SqlContext, p: Parameter<'id' | 'tenant'>): Sql {
  return sql`select j.run_id from ${tables.debounced_runs} as j
    where j.tenant = ${p('tenant')} and j.job_name = ${NO_JOB} and j.key = ${p('id')}`
}

function hasRoom(context: SqlContext, p: Parameter<'payload' | 'max' | 'maxBytes'>): Sql {
  return and(
    sql`(${entries(context, sql`r.payload`)}) + json_array_length(${p('payload')}) <= ${p('max')}`,
    sql`octet_length(${together(context, p)}) <= ${p('maxBytes')}`,
  )
}

/** Of a list; a planner may have it asked of the payloads of other runs as well, which are none. */
function entries({ dialect }: SqlContext, payload: Sql): Sql {
  return sql`case when substr(${dialect.read(payload, 'json')}, 1, 1) = '[' then json_array_length(${payload}) end`
}

/** The text of both lists as one; neither is empty. */
function together({ dialect }: SqlContext, p: Parameter<'payload'>): Sql {
  const [before, more] = [dialect.read(sql`r.payload`, 'json'), dialect.read(p('payload'), 'json')]
  return sql`(substr(${before}, 1, length(${before}) - 1) || ',' || substr(${more}, 2))`
}
