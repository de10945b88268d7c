import { SUSPECT_FROM } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import { pausedJobs, slotsTaken, startOfExecution, type TakeName } from './claim-parts'
import { forgottenStarts, hasRoomFor, lastStart, type LimitName } from './limits'
import { and, list, runColumns, type Sql, type SqlContext, statement } from '../statement'

/** A claim under limits takes some milliseconds. */
const LOCK_MS = 50

/**
 * One claim under the limits of a job at a time, and each sees what those before it took: the next statement of the
 * transaction looks at the database anew. Who died, or sleeps, in the middle keeps the others waiting no longer than this.
 */
export function lockStatement(context: SqlContext) {
  const space = sql.lit(`${context.prefix}limits`)
  return statement<'jobName'>(
    context,
    (p) => sql`select pg_advisory_xact_lock(hashtext(${space}), hashtext(${p('jobName')})) as locked
      where (select set_config('lock_timeout', ${sql.lit(`${LOCK_MS}ms`)}, true)) is not null`,
  )
}

type StartName = TakeName | 'events'
type DueName = 'jobs' | 'holdsSuspect'
type KeylessName = StartName | DueName | 'limit'
type BatchName = KeylessName | 'looksAhead' | 'fromTenant' | 'fromKey' | LimitName
type Parameter = (name: BatchName) => Sql

/** How many runs with a key are looked at in order, beyond those that are wanted, before the keys are gone through. */
const FRONT = 32

/** How many keys one statement goes through, and how many it looks at because runs of theirs come early. */
export const KEYS_AT_ONCE = 64

/** How many runs are looked at in order behind a blocked front, */
const BEYOND = 128
/** and then of each of so many lower priorities: however many runs wait for a busy key, those have others in front. */
const PRIORITIES = 4
const OF_A_PRIORITY = 32

/** In no index, or Postgres would read all that waits, of which it believes that it is little, to find those few rows in it. */
const UNINDEXED_STATUS = sql`concat(r.status)`

/** A row that changed after the statement began is locked but not found at its new place; the next round finds it. */
export function takeStatement(context: SqlContext, isLimited: boolean) {
  return statement<BatchName>(context, (p) => {
    const limit = isLimited ? sql`(select room from allowed)` : p('limit')
    const before = [...(isLimited ? [allowed(context, p)] : []), ...candidates(context, p, limit)]
    return sql`with recursive ${list(...before, ...placement(context, limit))},
      ${list(...start(context, p))}${isLimited ? startNotes(context, p) : sql``}
      select t.*, ${runColumns(context, 'c')}
      from (select exists (select 1 from tried where not is_mine)
          or (select count(*) from claimed) < (select count(*) from placed) as is_contended,
        (select count(*) from picked) > (select count(*) from placed) as has_passed_over,
        exists (select 1 from front) as has_keys, (select is_so from blocked) as is_blocked, (select count(*) from keys) as walked, last.tenant as last_tenant, last.key as last_key
        from (select true) as one left join (select tenant, key from keys order by nth desc limit 1) as last on true) as t
      left join claimed as c on true`
  })
}

/**
 * Where no due run has a key, which is most databases at most times: planning all that keys need takes Postgres longer than
 * the claim itself. `has_keys` says that some has one, and then nothing was looked at beyond that.
 */
export function keylessStatement(context: SqlContext) {
  const { tables } = context
  return statement<KeylessName>(context, (p) => {
    const due = isDue(context, p)
    return sql`with keyed as materialized (
        select (select true from ${tables.runs} as r where ${due} and r.concurrency_key is not null
          order by ${ORDER} limit 1) is not null as are_due),
      keyless as materialized (${keyless(context, sql`not (select are_due from keyed) and ${due}`, p('limit'))}),
      picked as materialized (select * from keyless),
      ${WANTED},
      placed as materialized (select ctid, null::integer as slot from wanted),
      ${list(...start(context, p))}
      select t.*, ${runColumns(context, 'c')}
      from (select (select are_due from keyed) as has_keys,
        (select count(*) from claimed) < (select count(*) from placed) as is_contended,
        (select count(*) from picked) > (select count(*) from placed) as has_passed_over) as t
      left join claimed as c on true`
  })
}

/** What is placed begins, and is told. */
function start(context: SqlContext, p: (name: StartName) => Sql): Sql[] {
  const { tables, dialect, fences } = context
  const events = dialect.rowsOf(p('events'))
  return [
    sql`claimed as (
        update ${tables.runs} as r set ${startOfExecution(context, p, { slot: sql`placed.slot` })} from placed
        where r.ctid = placed.ctid and ${fences['claim.status'](UNINDEXED_STATUS)} returning r.*)`,
    sql`told as (
        insert into ${tables.run_events} (run_id, seq, event_type, payload, created_at)
        select c.id, c.last_event_sequence - ${p('eventCount')} + ${dialect.field(sql`e.value`, 0, 'integer')},
          ${dialect.field(sql`e.value`, 1, 'text')}, ${dialect.toJson(dialect.field(sql`e.value`, 2, 'text'))}, ${dialect.now}
        from claimed as c cross join ${events} as e)`,
  ]
}

/** How many runs the limits of the job leave room for, of those that are wanted. */
function allowed(context: SqlContext, p: Parameter): Sql {
  return sql`allowed as materialized (
    select (select count(*) from generate_series(1, ${p('limit')}) as wanted (nth)
        where ${hasRoomFor(context, p, sql`wanted.nth`)}) as room,
      ${lastStart(context, p)} as last_start)`
}

/** What is written down for a rate, in the statement of the claim. */
function startNotes(context: SqlContext, p: Parameter): Sql {
  const { tables, dialect } = context
  const last = sql`(select last_start from allowed)`
  return sql`,
      noted as (
        insert into ${tables.job_starts} (job_name, nth, started_at)
        select ${p('jobName')}, ${last} + row_number() over (), ${dialect.now} from claimed
        where ${p('maxStarts')} is not null),
      forgotten as (${forgottenStarts(context, p, last)})`
}

const ORDER = sql`r.priority desc, r.available_at, r.id`

const PLACE_IN_ORDER = sql`r.tenant, r.concurrency_key, r.priority, r.available_at, r.id`

const COLUMNS = [
  'ctid',
  'id',
  'tenant',
  'concurrency_key',
  'concurrency_slot',
  'concurrency_limit',
  'priority',
  'available_at',
  'crash_count',
]

function columnsOf(alias: string): Sql {
  return list(...COLUMNS.map((column) => sql.ref(`${alias}.${column}`)))
}

function isDue(context: SqlContext, p: (name: DueName) => Sql): Sql {
  const { dialect, fences } = context
  return and(
    fences['claim.status'](dialect.waitingStatus(sql`r.status`)),
    fences['claim.due'](dialect),
    fences['claim.known'](p('jobs'), dialect),
    fences['claim.suspect'](sql`${p('holdsSuspect')} = 0`),
    fences['claim.paused'](pausedJobs(context), dialect),
  )
}

function keyless({ tables }: SqlContext, due: Sql, limit: Sql): Sql {
  return sql`select ${columnsOf('r')} from ${tables.runs} as r where ${due} and r.concurrency_key is null
    order by ${ORDER} limit ${limit} for update of r skip locked`
}

/** One suspect at most. */
const WANTED = sql`wanted as materialized (
      select r.* from picked as r where r.crash_count < ${sql.lit(SUSPECT_FROM)} or r.id = (
        select s.id from picked as s where s.crash_count >= ${sql.lit(SUSPECT_FROM)}
        order by s.priority desc, s.available_at, s.id limit 1))`

/**
 * Each part can be had from one index only, or is a lookup for each row, so that what the planner believes about the
 * table does not matter: its statistics lag behind a queue that fills.
 *
 * The due runs in order: without a key from the index on order; with a key from the first few of theirs, and if those
 * are blocked, from what comes next, from the first of lower priorities, and from the front of so many keys behind the
 * place where the last statement ended. So a busy key costs the same however many runs wait for it, and however many keys
 * do; a run on a free key is seldom passed by lower ones, and never for longer than going through all keys takes.
 */
function candidates(context: SqlContext, p: Parameter, limit: Sql): Sql[] {
  const { tables, dialect, fences } = context
  const due = isDue(context, p)
  const isFree = fences['claim.slot'](slotsTaken(context, 'r'))
  const isOfKey = and(due, sql`r.concurrency_key is not null and r.tenant = k.tenant and r.concurrency_key = k.key`)
  const nextKey = (after: Sql) => sql`(select r.tenant, r.concurrency_key from ${tables.runs} as r
    where ${dialect.waitingStatus(sql`r.status`)} = 'pending' and r.concurrency_key is not null and ${after} order by r.tenant, r.concurrency_key limit 1)`
  const nextPriority = sql`(select r.priority from ${tables.runs} as r
    where ${dialect.waitingStatus(sql`r.status`)} = 'pending' and r.concurrency_key is not null and r.priority < k.priority
    order by r.priority desc limit 1)`
  return [
    sql`keyless as materialized (${keyless(context, due, limit)})`,
    sql`front as materialized (
      select ${columnsOf('r')}, ${isFree} as is_free from ${tables.runs} as r where ${due} and r.concurrency_key is not null
      order by ${ORDER} limit ${limit} + ${sql.lit(FRONT)})`,
    sql`blocked as materialized (
      select count(*) = ${limit} + ${sql.lit(FRONT)} and count(*) filter (where is_free) < ${limit} as is_so
      from front)`,
    sql`beyond as materialized (
      select ${PLACE_IN_ORDER} from ${tables.runs} as r
      where (select is_so from blocked) and ${p('looksAhead')} = 1 and ${due} and r.concurrency_key is not null
      order by ${ORDER} offset ${limit} + ${sql.lit(FRONT)} limit ${sql.lit(BEYOND)})`,
    sql`priorities (priority, nth) as (
      select n.priority, 1 from (select min(priority) as priority from beyond having count(*) = ${sql.lit(BEYOND)}) as k
        cross join lateral ${nextPriority} as n
      union all select n.priority, k.nth + 1 from priorities as k cross join lateral ${nextPriority} as n
        where k.nth < ${sql.lit(PRIORITIES)})`,
    // The planner takes a recursion for longer than it is, and believes a limit.
    sql`ahead as (
      select * from beyond
      union all select h.* from (select priority from priorities limit ${sql.lit(PRIORITIES)}) as k cross join lateral (
        select ${PLACE_IN_ORDER} from ${tables.runs} as r
        where ${due} and r.concurrency_key is not null and r.priority = k.priority
        order by ${ORDER} limit ${sql.lit(OF_A_PRIORITY)}) as h)`,
    sql`keys_ahead as (
      select r.tenant, r.concurrency_key as key from (
        select distinct on (tenant, concurrency_key) * from ahead
        where (tenant, concurrency_key) not in (select tenant, concurrency_key from front where not is_free)
        order by tenant, concurrency_key, priority desc, available_at, id) as r
      order by ${ORDER} limit ${sql.lit(KEYS_AT_ONCE)})`,
    sql`keys (tenant, key, nth) as (
      select first.*, 1 from ${nextKey(sql`(select is_so from blocked)
        and (r.tenant, r.concurrency_key) >= (${p('fromTenant')}, ${p('fromKey')})`)} as first
      union all select n.*, k.nth + 1 from keys as k
        cross join lateral ${nextKey(sql`(r.tenant, r.concurrency_key) > (k.tenant, k.key)`)} as n
        where k.nth < ${sql.lit(KEYS_AT_ONCE)})`,
    sql`keys_looked_at as materialized (select tenant, key from keys union all select tenant, key from keys_ahead)`,
    sql`found as (
      select ${columnsOf('front')} from front where is_free
      union all select ${columnsOf('h')} from keys_looked_at as k
        cross join lateral (select r.concurrency_limit, r.tenant, r.concurrency_key from ${tables.runs} as r
          where ${isOfKey} order by ${ORDER} limit 1) as first
        cross join lateral (select ${columnsOf('r')} from ${tables.runs} as r
          where ${isOfKey} and r.concurrency_slot is null and ${slotsTaken(context, 'first')} < first.concurrency_limit
          order by ${ORDER} limit ${limit}) as h
      union all select ${columnsOf('r')} from keys_looked_at as k cross join lateral (
          select r.*, r.ctid from ${tables.runs} as r
          where r.concurrency_slot is not null and r.tenant = k.tenant and r.concurrency_key = k.key offset 0) as r
        where ${due})`,
    sql`keyed as materialized (
      select r.* from (
        select r.id from (select distinct on (id) * from found) as r order by ${ORDER} limit ${limit} + ${sql.lit(FRONT)}) as f
      cross join lateral (
        select ${columnsOf('r')} from ${tables.runs} as r where r.id = f.id and ${due} and ${isFree}
        for update of r skip locked) as r
      limit ${limit})`,
  ]
}

/** Which of them are taken, one suspect at most, and the slot of each: the lowest ones that nobody has, counted by the run's own limit. */
function placement({ tables, prefix }: SqlContext, limit: Sql): Sql[] {
  const lockSpace = sql.lit(`${prefix}slots`)
  const free = sql`select s.slot from generate_series(0, ranked.concurrency_limit - 1) as s (slot)
    where not exists (select 1 from ${tables.runs} as a where a.tenant = ranked.tenant
      and a.concurrency_key = ranked.concurrency_key and a.concurrency_slot = s.slot)
    order by s.slot offset ranked.nth - 1 limit 1`
  return [
    sql`picked as materialized (
      select * from (select * from keyless union all select * from keyed) as r order by ${ORDER} limit ${limit})`,
    WANTED,
    // Who claims from a key keeps the others away from it for as long as the statement takes; nobody waits.
    sql`tried as materialized (
      select tenant, concurrency_key, pg_try_advisory_xact_lock(
        hashtext(${lockSpace}), hashtext(tenant || '/' || concurrency_key)) as is_mine
      from (select distinct tenant, concurrency_key from wanted
        where concurrency_key is not null and concurrency_slot is null) as keys_wanted)`,
    sql`ranked as (
      select wanted.*, row_number() over (
        partition by tenant, concurrency_key, concurrency_slot is null order by priority desc, available_at, id) as nth
      from wanted)`,
    sql`placed as materialized (
      select ctid, null::integer as slot from wanted where concurrency_key is null or concurrency_slot is not null
      union all
      select of_key.ctid, of_key.slot from (
        select ranked.ctid, (${free}) as slot from ranked join tried using (tenant, concurrency_key)
        where tried.is_mine and ranked.concurrency_slot is null) as of_key
      where of_key.slot is not null)`,
  ]
}
