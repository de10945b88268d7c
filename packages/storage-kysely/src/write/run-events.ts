import type { EventTemplate } from '@coji/durably-core/storage'
import { type CompiledQuery, sql } from 'kysely'
import {
  assignments,
  type ParameterName,
  type Sql,
  type SqlContext,
  type SqlValue,
  type Statement,
  statement,
  wokenByChildren,
} from '../statement'

type EventName = 'offset' | 'type' | 'payload'

export type EventStatement<TName extends ParameterName> = Statement<EventName | TName>

/** Appends one event to the run `r` that passes the guard, before the statement that counts it. */
export function eventStatement<TName extends ParameterName>(
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

interface BindEventsParams<TName extends ParameterName> {
  readonly statement: EventStatement<TName>
  readonly events: readonly EventTemplate[]
  /** How many events of the same write come before. */
  readonly after: number
  readonly values: Readonly<Record<TName, SqlValue>>
}

export function bindEvents<TName extends ParameterName>(params: BindEventsParams<TName>): CompiledQuery[] {
  return params.events.map(({ type, payload }, index) =>
    params.statement.bind({ ...params.values, type, payload, offset: params.after + index + 1 }),
  )
}

/**
 * An ended run wakes those that wait for it. `child` is a condition on the ending run `r`, still unchanged; what is
 * suspended for its steps goes on.
 */
export function wakeParentsStatement<TName extends ParameterName>(
  context: SqlContext,
  child: (parameter: (name: TName) => Sql) => Sql,
): Statement<TName> {
  const { tables, dialect } = context
  return statement<TName>(
    context,
    (p) => sql`update ${tables.runs} as parent set ${assignments(wokenByChildren(context, 'parent', sql`1`))}
      where parent.id in (
        select r.parent_run_id from ${tables.runs} as r where ${child(p)}
        union all select a.value from ${tables.runs} as r cross join ${dialect.listOf(sql`r.also_awaited_by`)} as a where ${child(p)})
      and parent.finished_at is null returning id`,
  )
}
