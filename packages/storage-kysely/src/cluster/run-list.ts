import type { NewRun } from '@coji/durably-core/storage'
import { type CompiledQuery, sql } from 'kysely'
import { groupValues, NEW_RUN_VALUES, newRunColumns, newRunValues } from '../write'
import {
  list,
  namesOf,
  type ParameterName,
  rowsOf,
  type Sql,
  type SqlContext,
  type SqlValue,
  statement,
  valueOf,
} from '../statement'

/** A run, and the id of what it is created for. */
export interface CausedRun {
  readonly run: NewRun
  readonly cause: string
}

/** Any number of runs by a few statements, on each database, as part of a list that begins with what allows them. */
export interface RunList<TName extends ParameterName> {
  /** The first answers the ids of the runs that were not there yet; none for no runs. */
  bind(runs: readonly CausedRun[], values: Readonly<Record<TName, SqlValue>>): readonly CompiledQuery[]
}

/** `isAllowed` says of a cause whether its runs may be created: by one lookup, however few causes the planner expects. */
export function createRunList<TName extends ParameterName>(
  context: SqlContext,
  isAllowed: (cause: Sql, p: (name: TName) => Sql) => Sql,
): RunList<TName> {
  const { tables, dialect } = context
  const value = valueOf(context, 't')
  const insert = statement<'runs' | TName>(context, (p) => {
    const columns = newRunColumns(context, value, dialect.now)
    const guard = isAllowed(value('cause'), p)
    return sql`insert into ${tables.runs} (${namesOf(columns)}) select ${list(...Object.values(columns))}
      from ${rowsOf(context, p('runs'), [...NEW_RUN_VALUES, 'cause'])} where ${guard}
      order by t.n on conflict do nothing returning id`
  })
  const label = statement<'labels'>(
    context,
    (p) => sql`insert into ${tables.run_labels} (run_id, name, value, tenant, created_at)
      select r.id, t."labelName", t."labelValue", r.tenant, r.created_at
      from ${rowsOf(context, p('labels'), ['id', 'labelName', 'labelValue'])} join ${tables.runs} as r on r.id = t.id
      where true on conflict do nothing`,
  )
  const tell = statement<'events'>(
    context,
    (p) => sql`insert into ${tables.run_events} (run_id, seq, event_type, payload, created_at)
      select r.id, t.seq, t.type, ${value('payload')}, ${dialect.now}
      from ${rowsOf(context, p('events'), ['id', 'seq', 'type', 'payload'])} join ${tables.runs} as r on r.id = t.id
      where true on conflict do nothing`,
  )
  return {
    bind(caused, values) {
      if (caused.length === 0) return []
      const { labels, events } = groupValues(caused.map(({ run }) => run))
      const runs = JSON.stringify(caused.map(({ run, cause }, n) => ({ n, cause, ...newRunValues(run) })))
      return [
        insert.bind({ ...values, runs } as Record<'runs' | TName, SqlValue>),
        ...(labels === NONE ? [] : [label.bind({ labels })]),
        ...(events === NONE ? [] : [tell.bind({ events })]),
      ]
    },
  }
}

/** The JSON of an empty list. */
const NONE = '[]'
