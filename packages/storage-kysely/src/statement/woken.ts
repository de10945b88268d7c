import { sql } from 'kysely'
import type { SqlDialect } from '../dialect'
import type { Sql, SqlContext } from './statement'

interface Suspended {
  readonly createdAt: Sql
  readonly availableAt: Sql
  readonly wakes: Sql
  readonly wakesWanted: Sql
  readonly restUntil: Sql
}

/** When a suspended run is due that children have woken: when its rest is over, or at once if they were all it waits for. */
export function wokenAt(
  dialect: SqlDialect,
  { createdAt, availableAt, wakes, wakesWanted, restUntil }: Suspended,
): Sql {
  return sql`case when ${restUntil} is null or ${restUntil} <= ${dialect.now} or ${wakes} >= ${wakesWanted} then ${createdAt}
    else ${dialect.least(sql`coalesce(${availableAt}, ${restUntil})`, restUntil)} end`
}

type Changes = Readonly<Record<string, Sql>>
type Context = Pick<SqlContext, 'dialect'>

/** What changes on a run of whose children so many have ended. */
export function wokenByChildren({ dialect }: Context, run: string, children: Sql): Changes {
  const column = (name: string) => sql.ref(`${run}.${name}`)
  const wakes = sql`${column('wakes')} + ${children}`
  const availableAt = wokenAt(dialect, {
    ...{ createdAt: column('created_at'), availableAt: column('available_at'), wakes },
    ...{ wakesWanted: column('wakes_wanted'), restUntil: restEndOf({ dialect }, column) },
  })
  return woken({ dialect }, { run, wakes, availableAt })
}

/** None if the clock was set back since the suspension: the rest would be as much longer. */
function restEndOf({ dialect }: Context, column: (name: string) => Sql): Sql {
  return sql`case when ${column('heartbeat_at')} <= ${dialect.now} then ${column('rest_until')} end`
}

/** What changes on a run that has one signal more. */
export function wokenBySignal({ dialect }: Context, run: string): Changes {
  const wakes = sql`${sql.ref(`${run}.wakes`)} + 1`
  return { ...woken({ dialect }, { run, wakes, availableAt: sql.ref(`${run}.created_at`) }), last_signal: wakes }
}

function woken(
  { dialect }: Context,
  { run, wakes, availableAt }: { run: string; wakes: Sql; availableAt: Sql },
): Changes {
  const column = (name: string) => sql.ref(`${run}.${name}`)
  const isSuspended = sql`${column('status')} = 'pending' and ${dialect.property(column('waiting_for'), 'kind')} = 'steps'`
  return {
    wakes,
    version: sql`${column('version')} + 1`,
    updated_at: dialect.now,
    available_at: sql`case when ${isSuspended} then ${availableAt} else ${column('available_at')} end`,
  }
}

/** The ids of those that wait for the run `r`, as a query with a column `id`. */
export function awaitersOf({ dialect }: Context): Sql {
  return sql`select r.parent_run_id as id where r.parent_run_id is not null
    union all select value as id from ${dialect.listOf(sql`r.also_awaited_by`)}`
}
