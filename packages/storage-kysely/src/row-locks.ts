import { type CompiledQuery, sql } from 'kysely'
import type { Rows } from './drivers/hooks'
import { list, type Sql, type SqlContext, statement } from './statement'
import type { WriteTarget } from './statement-target'

/** Sends a list while nobody else can change these runs, nor the runs that wait for them. */
type WriteLocked = (
  target: WriteTarget,
  runIds: readonly string[],
  list: readonly CompiledQuery[],
) => Promise<readonly Rows[]>

/**
 * On Postgres a guard that only reads does not keep a change out that commits a moment later, so the rows are locked
 * before any guard looks at them. On SQLite the first write has locked the database.
 */
export function createWriteLocked(context: SqlContext): WriteLocked {
  if (context.dialect.name === 'sqlite') return (target, _runIds, queries) => target.write(queries)
  const { tables, dialect } = context
  const lock = statement<'runIds'>(context, (p) => {
    const ids = dialect.listOf(p('runIds'))
    const touched = sql`select value as id from ${ids} union select r.parent_run_id from ${tables.runs} as r
      where r.id in (select value from ${ids}) and r.parent_run_id is not null`
    return sql`with ${lockedRuns(context, touched)} select id from locked`
  })
  return async (target, runIds, queries) => {
    const results = await target.write([lock.bind({ runIds: JSON.stringify(runIds) }), ...queries])
    return results.slice(1)
  }
}

/** What the guards of a holder read, and what its writes build upon. */
const LOCKED_COLUMNS = [
  'id',
  'status',
  'lease_epoch',
  'claim_token',
  'leader_epoch',
  'commit_no',
  'last_event_sequence',
  'cancel_requested_at',
  'parent_run_id',
]

/**
 * A query named `locked`: the rows of `runs` with these ids, locked, as they are once the lock is there. Everybody locks
 * in the order of the ids' bytes, whatever that of the database is, so that no two wait for each other; and by one lookup each, however few rows the planner
 * believes the table to have. Who does not wait goes without the rows that somebody else has locked.
 */
export function lockedRuns({ tables }: SqlContext, ids: Sql, { waits = true } = {}): Sql {
  const columns = list(...LOCKED_COLUMNS.map((column) => sql.ref(`r.${column}`)))
  return sql`locked as materialized (
    select r.* from (select distinct id collate "C" as id from (${ids}) as given order by 1) as wanted
    cross join lateral (select ${columns} from ${tables.runs} as r where r.id = wanted.id for update${waits ? sql`` : sql` skip locked`}) as r)`
}
