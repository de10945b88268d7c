import type { NewRun } from '@coji/durably-core/storage'
import { type CompiledQuery, sql } from 'kysely'
import type { Rows } from '../dialect'
import { awaitersOf, list, type Sql, type SqlContext, statement, type WriteTarget } from '../statement'

/** Runs by their ids, and those that have a key. */
export interface Touched {
  readonly runIds: readonly string[]
  /** Of who waits briefly for those that somebody else has locked. */
  readonly patienceMs?: number | undefined
  readonly keys?: readonly Pick<NewRun, 'tenant' | 'jobName' | 'idempotencyKey'>[]
}

/** Sends a list while nobody else can change these runs, nor the runs that wait for them. */
export type WriteLocked = (
  target: WriteTarget,
  touched: Touched,
  list: readonly CompiledQuery[],
) => Promise<readonly Rows[]>

/**
 * On Postgres a guard that only reads does not keep a change out that commits a moment later, so the rows are locked
 * before any guard looks at them. On SQLite the first write has locked the database.
 */
export function createWriteLocked(context: SqlContext, waiting: Waiting = 'long'): WriteLocked {
  const lock = createLock(context, waiting)
  return async (target, touched, queries) => {
    const locks = lock(touched)
    const results = await target.write([...locks, ...queries])
    return locks.length === 0 ? results : results.slice(locks.length)
  }
}

/**
 * For rows that somebody else has locked: `long` as the session or the transaction says, `briefly` for the patience that is
 * told, `never` without them.
 */
export type Waiting = 'long' | 'briefly' | 'never'

/** What locks them, and the runs that wait for them. What waits briefly does so for the rest of its transaction. */
export function createLock(
  context: SqlContext,
  waiting: Waiting = 'long',
): (touched: Touched) => readonly CompiledQuery[] {
  if (context.dialect.hasOneWriter) return () => []
  const { tables, dialect } = context
  const key = (index: number) => dialect.field(sql`k.value`, index, 'text')
  const lock = statement<'runIds' | 'keys' | PatienceName>(context, (p) => {
    const ids = dialect.listOf(p('runIds'))
    const touched = sql`select value as id from ${ids} union select w.id from ${tables.runs} as r
      cross join lateral (${awaitersOf(context)}) as w where r.id in (select value from ${ids})
      union select r.id from ${dialect.rowsOf(p('keys'))} as k join ${tables.runs} as r on r.tenant = ${key(0)}
        and r.job_name = ${key(1)} and r.idempotency_key = ${key(2)}`
    return sql`with ${lockedRuns(context, touched, lockTerms(waiting, p))} select id from locked`
  })
  return ({ runIds, keys = [], patienceMs = 0 }) => {
    const wanted = keys.map(({ tenant, jobName, idempotencyKey }) => [tenant, jobName, idempotencyKey])
    return [lock.bind({ runIds: JSON.stringify(runIds), keys: JSON.stringify(wanted), ...patience(patienceMs) })]
  }
}

/** How a statement waits for the rows that it locks. */
interface LockTerms {
  readonly waiting: Waiting
  /** Of what waits briefly. */
  readonly patience?: Sql
}

export type PatienceName = 'patience'

export function lockTerms(waiting: Waiting, p: (name: PatienceName) => Sql): LockTerms {
  return waiting === 'briefly' ? { waiting, patience: p('patience') } : { waiting }
}

/** Without any, the session or the transaction says. */
export function patience(ms: number | undefined): Readonly<Record<PatienceName, string>> {
  return { patience: ms === undefined ? '' : `${ms}ms` }
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
  'also_awaited_by',
]

/**
 * A query named `locked`: the rows of `runs` with these ids, locked, as they are once the lock is there. Everybody locks
 * in the order of the ids' bytes, whatever that of the database is, so that no two wait for each other; and by one lookup
 * each, however few rows the planner believes the table to have. The setting is made before the first row is locked:
 * none comes before all ids are sorted.
 */
export function lockedRuns(
  { tables }: SqlContext,
  ids: Sql,
  { waiting, patience }: LockTerms = { waiting: 'long' },
): Sql {
  const columns = list(...LOCKED_COLUMNS.map((column) => sql.ref(`r.${column}`)))
  const isTold =
    patience === undefined ? sql`` : sql`where (select set_config('lock_timeout', ${patience}, true)) is not null`
  const others = waiting === 'never' ? sql` skip locked` : sql``
  return sql`locked as materialized (
    select r.* from (select distinct id collate "C" as id from (${ids}) as given ${isTold} order by 1) as wanted
    cross join lateral (select ${columns} from ${tables.runs} as r where r.id = wanted.id for update${others}) as r)`
}
