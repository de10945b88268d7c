import { type EventTemplate, newRecord, type NewRun, type RunRecord } from '@coji/durably-core/storage'
import { type CompiledQuery, sql } from 'kysely'
import {
  list,
  type ParameterName,
  type Row,
  type Sql,
  type SqlContext,
  type SqlValue,
  type Statement,
  statement,
} from '../statement'

/** Under what condition, and on behalf of whom, a run is created. */
export interface Origin<TName extends ParameterName> {
  /** A run `r` under this condition; without one the insert stands alone. */
  readonly guard: ((parameter: (name: TName) => Sql) => Sql) | null
  /** Not if there is such a row; for an insert that stands alone. */
  readonly unless?: (parameter: (name: TName | 'tenant' | 'jobName') => Sql) => Sql
  /** Columns of a new row that stands alone. */
  readonly returning?: Sql
}

/** The values of a new row. `firstId` is the first run of the list. */
export type RunName =
  | 'id'
  | 'tenant'
  | 'jobName'
  | 'jobVersion'
  | 'payload'
  | 'idempotencyKey'
  | 'concurrencyKey'
  | 'concurrencyLimit'
  | 'holdKeyWhileWaiting'
  | 'priority'
  | 'startAt'
  | 'afterMs'
  | 'timeoutMs'
  | 'parentRunId'
  | 'scheduleId'
  | 'scheduledFor'
  | 'traceParent'
  | 'eventCount'
  | 'firstId'

type LabelName = 'id' | 'labelName' | 'labelValue'
type EventName = 'id' | 'seq' | 'type' | 'payload'
type KeyName = 'id' | 'tenant' | 'jobName' | 'idempotencyKey' | 'payload'

export interface NewRunStatements<TName extends ParameterName> {
  readonly insert: Statement<RunName | TName>
  readonly label: Statement<LabelName | TName>
  readonly event: Statement<EventName | TName>
  readonly refuse: Statement<KeyName | TName>
}

/** What creates a run: its row, labels and events, and the statement that fails when its key is taken otherwise. */
export function newRunStatements<TName extends ParameterName = never>(
  context: SqlContext,
  { guard, unless, returning = sql`` }: Origin<TName>,
): NewRunStatements<TName> {
  const { tables, dialect } = context
  return {
    insert: insertStatement(context, { guard, returning, ...(unless !== undefined && { unless }) }),
    label: statement(context, (p) => {
      return sql`insert into ${tables.run_labels} (run_id, name, value, tenant, created_at)
        select n.id, ${p('labelName')}, ${p('labelValue')}, n.tenant, n.created_at from ${tables.runs} as n
        where n.id = ${p('id')} ${withGuard(context, guard, p)} on conflict do nothing`
    }),
    event: statement(context, (p) => {
      return sql`insert into ${tables.run_events} (run_id, seq, event_type, payload, created_at)
        select n.id, ${p('seq')}, ${p('type')}, ${p('payload')}, ${dialect.now} from ${tables.runs} as n
        where n.id = ${p('id')} ${withGuard(context, guard, p)} on conflict do nothing`
    }),
    // There is no `raise` outside of triggers; a NOT NULL violation takes the whole list back just as well.
    refuse: statement(context, (p) => {
      return sql`update ${tables.runs} as n set job_name = null
        where n.tenant = ${p('tenant')} and n.job_name = ${p('jobName')}
          and n.idempotency_key = ${p('idempotencyKey')} and n.id <> ${p('id')}
          and not (${dialect.isSameJson(sql`n.payload`, p('payload'))}) ${withGuard(context, guard, p)}`
    }),
  }
}

/** The columns of a new row. */
export function newRunColumns(
  { dialect }: SqlContext,
  value: (name: Exclude<RunName, 'firstId'>) => Sql,
  createdAt: Sql,
): Readonly<Record<string, Sql>> {
  return {
    id: value('id'),
    tenant: value('tenant'),
    job_name: value('jobName'),
    job_version: value('jobVersion'),
    payload: value('payload'),
    status: sql.lit('pending'),
    idempotency_key: value('idempotencyKey'),
    concurrency_key: value('concurrencyKey'),
    concurrency_limit: value('concurrencyLimit'),
    hold_key_while_waiting: value('holdKeyWhileWaiting'),
    priority: value('priority'),
    available_at: sql`case when ${value('startAt')} is null then ${dialect.plus(createdAt, value('afterMs'))}
      when ${value('startAt')} < ${createdAt} then ${createdAt} else ${value('startAt')} end`,
    timeout_ms: value('timeoutMs'),
    parent_run_id: value('parentRunId'),
    schedule_id: value('scheduleId'),
    scheduled_for: value('scheduledFor'),
    trace_parent: value('traceParent'),
    last_event_sequence: value('eventCount'),
    created_at: createdAt,
    updated_at: dialect.now,
  }
}

function insertStatement<TName extends ParameterName>(
  context: SqlContext,
  { guard, unless, returning = sql`` }: Origin<TName>,
): Statement<RunName | TName> {
  const { tables, dialect } = context
  return statement<RunName | TName>(context, (p) => {
    // The runs of one list are created at one instant.
    const createdAt = sql`coalesce((select f.created_at from ${tables.runs} as f where f.id = ${p('firstId')}), ${dialect.now})`
    const columns = newRunColumns(context, p, createdAt)
    const names = list(...Object.keys(columns).map((name) => sql.ref(name)))
    const values = list(...Object.values(columns))
    if (guard === null && unless === undefined)
      return sql`insert into ${tables.runs} (${names}) values (${values})
      on conflict do nothing ${returning}`
    if (guard === null)
      return sql`insert into ${tables.runs} (${names}) select ${values} where not exists (${unless?.(p)})
      on conflict do nothing ${returning}`
    return sql`insert into ${tables.runs} (${names}) select ${values} from ${tables.runs} as r where ${guard(p)}
      on conflict do nothing`
  })
}

function withGuard<TName extends ParameterName, P extends string>(
  { tables }: SqlContext,
  guard: Origin<TName>['guard'],
  p: (name: P | TName) => Sql,
): Sql {
  return guard === null ? sql`` : sql`and exists (select 1 from ${tables.runs} as r where ${guard(p)})`
}

/** The values of the guard, and the first run of the list when this one is not the first. */
interface BoundTo<TName extends ParameterName> {
  readonly extra: Readonly<Record<TName, SqlValue>>
  readonly firstId: string | null
}

/** The statements for one run in order; the insert is the first. */
export function bindNewRun<TName extends ParameterName>(
  statements: NewRunStatements<TName>,
  run: NewRun,
  { extra, firstId }: BoundTo<TName>,
): CompiledQuery[] {
  const { id, idempotencyKey, tenant, jobName, payload } = run
  const queries = [statements.insert.bind({ ...extra, ...newRunValues(run), firstId })]
  if (run.onConflict === 'reject' && idempotencyKey !== null) {
    queries.push(statements.refuse.bind({ ...extra, id, tenant, jobName, idempotencyKey, payload }))
  }
  for (const [labelName, labelValue] of Object.entries(run.labels)) {
    queries.push(statements.label.bind({ ...extra, id, labelName, labelValue }))
  }
  run.events.forEach((event: EventTemplate, index) => {
    queries.push(statements.event.bind({ ...extra, id, seq: index + 1, type: event.type, payload: event.payload }))
  })
  return queries
}

export function newRunValues(run: NewRun): Record<Exclude<RunName, 'firstId'>, SqlValue> {
  return {
    id: run.id,
    tenant: run.tenant,
    jobName: run.jobName,
    jobVersion: run.jobVersion,
    payload: run.payload,
    idempotencyKey: run.idempotencyKey,
    concurrencyKey: run.concurrencyKey,
    concurrencyLimit: run.concurrencyLimit,
    holdKeyWhileWaiting: run.holdKeyWhileWaiting ? 1 : 0,
    priority: run.priority,
    startAt: 'at' in run.start ? run.start.at : null,
    afterMs: 'at' in run.start ? 0 : run.start.afterMs,
    timeoutMs: run.timeoutMs,
    parentRunId: run.parentRunId,
    scheduleId: run.scheduleId,
    scheduledFor: run.scheduledFor,
    traceParent: run.traceParent ?? null,
    eventCount: run.events.length,
  }
}

/** A run as it was just stored; `null` if it has changed since. */
export function freshRun(run: NewRun, row: Row): RunRecord | null {
  const [createdAt, availableAt] = [String(row['created_at']), String(row['available_at'])]
  const record = newRecord(run, { createdAt, availableAt, labels: run.labels })
  return row['version'] === record.version ? record : null
}
