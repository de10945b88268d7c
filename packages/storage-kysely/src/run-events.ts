import type { EventTemplate } from '@coji/durably-core'
import { type CompiledQuery, sql } from 'kysely'
import { assignments, type Sql, type SqlContext, type SqlValue, type Statement, statement } from './statement'

type EventName = 'offset' | 'type' | 'payload'

export type EventStatement<TName extends string> = Statement<EventName | TName>

/** Appends one event to the run `r` that passes the guard, before the statement that counts it. */
export function eventStatement<TName extends string>(
  context: SqlContext,
  guard: (parameter: (name: TName) => Sql) => Sql,
): EventStatement<TName> {
  const { tables, dialect } = context
  return statement<EventName | TName>(
    context,
    (p) => sql`insert into ${tables.run_events} (run_id, seq, event_type, payload, created_at)
      select r.id, r.last_event_sequence + ${p('offset')}, ${p('type')}, ${p('payload')}, ${dialect.now}
      from ${tables.runs} as r where ${guard(p)}`,
  )
}

interface BindEventsParams<TName extends string> {
  readonly statement: EventStatement<TName>
  readonly events: readonly EventTemplate[]
  /** How many events of the same write come before. */
  readonly after: number
  readonly values: Readonly<Record<TName, SqlValue>>
}

export function bindEvents<TName extends string>(params: BindEventsParams<TName>): CompiledQuery[] {
  return params.events.map(({ type, payload }, index) =>
    params.statement.bind({ ...params.values, type, payload, offset: params.after + index + 1 }),
  )
}

/**
 * An ended run wakes the run that waits for it. `child` is a condition on the ending run `r`, still unchanged; the
 * parent is due at once if it is suspended for its steps.
 */
export function wakeParentStatement<TName extends string>(
  context: SqlContext,
  child: (parameter: (name: TName) => Sql) => Sql,
): Statement<TName> {
  const { tables } = context
  return statement<TName>(
    context,
    (p) => sql`update ${tables.runs} as parent set ${assignments(wakeChanges(context, 'parent', sql`1`))}
      where parent.id = (select r.parent_run_id from ${tables.runs} as r where ${child(p)})
        and parent.finished_at is null returning id`,
  )
}

/** What changes on a run that has more signals or ended children than before. */
export function wakeChanges(
  { dialect }: Pick<SqlContext, 'dialect'>,
  run: string,
  by: Sql,
): Readonly<Record<string, Sql>> {
  const column = (name: string) => sql.ref(`${run}.${name}`)
  const isSuspended = sql`${column('status')} = 'pending' and ${dialect.property(column('waiting_for'), 'kind')} = 'steps'`
  return {
    wakes: sql`${column('wakes')} + ${by}`,
    version: sql`${column('version')} + 1`,
    updated_at: dialect.now,
    available_at: sql`case when ${isSuspended} then ${column('created_at')} else ${column('available_at')} end`,
  }
}
