import { type ClaimParams, isSuspect, type RunRecord, SUSPECT_FROM } from '@coji/durably-core'
import { sql } from 'kysely'
import { type Claim, inOrder, slotsTaken, startOfExecution, type TakeName } from './claim'
import { isConstraintError } from './driver-errors'
import type { Executor } from './executor'
import { pause } from './pause'
import { runColumns, toRun } from './rows'
import { and, list, type Sql, type SqlContext, statement } from './statement'

/** Two workers can want the same slot at the same moment; the unique index lets one of them have it. */
const MAX_MISSES = 5
const LONGEST_PAUSE_MS = 20

/** For Postgres: one statement claims as many runs as are wanted, and passes over what others are claiming just now. */
export function createClaimBatch(context: SqlContext, onMore: () => void): Claim {
  const take = takeStatement(context)
  let place = BEFORE_ALL_KEYS

  async function takeSome(executor: Executor, params: ClaimParams, claimed: readonly RunRecord[]) {
    const { workerId, claimToken, leaseMs, jobs, events } = params
    const limit = params.limit - claimed.length
    const query = take.bind({
      ...{ workerId, claimToken, leaseMs, limit },
      ...{ fromTenant: place.tenant, fromKey: place.key },
      jobs: JSON.stringify(jobs),
      events: JSON.stringify(events.map(({ type, payload }, index) => [index + 1, type, payload])),
      eventCount: events.length,
      holdsSuspect: params.holdsSuspect || claimed.some(isSuspect) ? 1 : 0,
    })
    const [rows = []] = await executor.write([query])
    const [first = {}] = rows
    const isAtEnd = Number(first['walked']) < KEYS_AT_ONCE
    place = isAtEnd ? BEFORE_ALL_KEYS : { tenant: String(first['last_tenant']), key: String(first['last_key']) }
    return {
      isAtEnd,
      runs: rows.filter((row) => row['id'] !== null).map(toRun),
      isContended: first['is_contended'] === true,
      hasPassedOver: first['has_passed_over'] === true,
    }
  }

  return async function claim(executor, params) {
    const claimed: RunRecord[] = []
    let misses = 0
    let isWholeRound = place === BEFORE_ALL_KEYS
    while (claimed.length < params.limit) {
      try {
        const { runs, isContended, hasPassedOver, isAtEnd } = await takeSome(executor, params, claimed)
        claimed.push(...runs)
        // They stood in the way of others, and do not any more: their key is taken now, or the one suspect.
        if (runs.length > 0 && hasPassedOver) continue
        if (!isContended) {
          if (isAtEnd && isWholeRound) break
          // Who waits for what was found need not wait for what may come behind it.
          if (claimed.length > 0) {
            if (claimed.length < params.limit) onMore()
            break
          }
          isWholeRound ||= isAtEnd
          continue
        }
      } catch (error) {
        if (!isConstraintError(error) || misses === MAX_MISSES) throw error
      }
      if (misses === MAX_MISSES) break
      misses += 1
      if (misses > 1) await pause(Math.random() * LONGEST_PAUSE_MS)
    }
    return claimed.sort(inOrder)
  }
}

/** How many keys one statement goes through; the next goes on with the last of them, and at the end begins anew. */
const KEYS_AT_ONCE = 64

const BEFORE_ALL_KEYS = { tenant: '', key: '' }

type BatchName = TakeName | 'jobs' | 'events' | 'limit' | 'holdsSuspect' | 'fromTenant' | 'fromKey'
type Parameter = (name: BatchName) => Sql

/** How many runs with a key are looked at in order, beyond those that are wanted, before the keys are gone through. */
const FRONT = 32

/** A row that changed after the statement began is locked but not found at its new place; the next round finds it. */
function takeStatement(context: SqlContext) {
  const { tables, dialect } = context
  return statement<BatchName>(context, (p) => {
    const events = dialect.rowsOf(p('events'))
    return sql`with recursive ${list(...candidates(context, p), ...placement(context, p))},
      claimed as (
        update ${tables.runs} as r set ${startOfExecution(context, p, sql`placed.slot`)} from placed
        where r.ctid = placed.ctid and ${context.fences['claim.status'](context.dialect)} returning r.*),
      told as (
        insert into ${tables.run_events} (run_id, seq, event_type, payload, created_at)
        select c.id, c.last_event_sequence - ${p('eventCount')} + ${dialect.field(sql`e.value`, 0, 'integer')},
          ${dialect.field(sql`e.value`, 1, 'text')}, ${dialect.toJson(dialect.field(sql`e.value`, 2, 'text'))}, ${dialect.now}
        from claimed as c cross join ${events} as e)
      select t.*, ${runColumns(context, 'c')}
      from (select exists (select 1 from tried where not is_mine)
          or (select count(*) from claimed) < (select count(*) from placed) as is_contended,
        (select count(*) from picked) > (select count(*) from placed) as has_passed_over,
        (select count(*) from keys) as walked, last.tenant as last_tenant, last.key as last_key
        from (select true) as one left join (select tenant, key from keys order by nth desc limit 1) as last on true) as t
      left join claimed as c on true`
  })
}

const ORDER = sql`r.priority desc, r.available_at, r.id`

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

/**
 * Each part can be had from one index only, or is a lookup for each row, so that what the planner believes about the
 * table does not matter: its statistics lag behind a queue that fills.
 *
 * The due runs in order: without a key from the index on order; with a key from the first few of theirs, and if those
 * are blocked, from the front of so many keys behind the place where the last statement ended, so that a busy key costs
 * the same however many runs wait for it, and however many keys do.
 */
function candidates(context: SqlContext, p: Parameter): Sql[] {
  const { tables, dialect, fences } = context
  const due = and(
    fences['claim.status'](dialect),
    fences['claim.due'](dialect),
    fences['claim.known'](p('jobs'), dialect),
    fences['claim.suspect'](sql`${p('holdsSuspect')} = 0`),
  )
  const isFree = fences['claim.slot'](slotsTaken(context, 'r'))
  const isOfKey = and(due, sql`r.concurrency_key is not null and r.tenant = k.tenant and r.concurrency_key = k.key`)
  const nextKey = (after: Sql) => sql`(select r.tenant, r.concurrency_key from ${tables.runs} as r
    where ${dialect.waitingStatus(sql`r.status`)} = 'pending' and r.concurrency_key is not null and ${after} order by r.tenant, r.concurrency_key limit 1)`
  return [
    sql`keyless as materialized (
      select ${columnsOf('r')} from ${tables.runs} as r where ${due} and r.concurrency_key is null
      order by ${ORDER} limit ${p('limit')} for update of r skip locked)`,
    sql`front as materialized (
      select ${columnsOf('r')}, ${isFree} as is_free from ${tables.runs} as r where ${due} and r.concurrency_key is not null
      order by ${ORDER} limit ${p('limit')} + ${sql.lit(FRONT)})`,
    sql`blocked as materialized (
      select count(*) = ${p('limit')} + ${sql.lit(FRONT)} and count(*) filter (where is_free) < ${p('limit')} as is_so
      from front)`,
    sql`keys (tenant, key, nth) as (
      select first.*, 1 from ${nextKey(sql`(select is_so from blocked)
        and (r.tenant, r.concurrency_key) >= (${p('fromTenant')}, ${p('fromKey')})`)} as first
      union all select n.*, k.nth + 1 from keys as k
        cross join lateral ${nextKey(sql`(r.tenant, r.concurrency_key) > (k.tenant, k.key)`)} as n
        where k.nth < ${sql.lit(KEYS_AT_ONCE)})`,
    sql`found as (
      select ${columnsOf('front')} from front where is_free
      union all select ${columnsOf('h')} from keys as k
        cross join lateral (select r.concurrency_limit, r.tenant, r.concurrency_key from ${tables.runs} as r
          where ${isOfKey} order by ${ORDER} limit 1) as first
        cross join lateral (select ${columnsOf('r')} from ${tables.runs} as r
          where ${isOfKey} and r.concurrency_slot is null and ${slotsTaken(context, 'first')} < first.concurrency_limit
          order by ${ORDER} limit ${p('limit')}) as h
      union all select ${columnsOf('r')} from keys as k cross join lateral (
          select r.*, r.ctid from ${tables.runs} as r
          where r.concurrency_slot is not null and r.tenant = k.tenant and r.concurrency_key = k.key offset 0) as r
        where ${due})`,
    sql`keyed as materialized (
      select r.* from (
        select r.id from (select distinct on (id) * from found) as r order by ${ORDER} limit ${p('limit')} + ${sql.lit(FRONT)}) as f
      cross join lateral (
        select ${columnsOf('r')} from ${tables.runs} as r where r.id = f.id and ${due} and ${isFree}
        for update of r skip locked) as r
      limit ${p('limit')})`,
  ]
}

/** Which of them are taken, one suspect at most, and the slot of each: the lowest ones that nobody has, counted by the run's own limit. */
function placement({ tables, prefix }: SqlContext, p: Parameter): Sql[] {
  const suspectFrom = sql.lit(SUSPECT_FROM)
  const lockSpace = sql.lit(`${prefix}slots`)
  const free = sql`select s.slot from generate_series(0, ranked.concurrency_limit - 1) as s (slot)
    where not exists (select 1 from ${tables.runs} as a where a.tenant = ranked.tenant
      and a.concurrency_key = ranked.concurrency_key and a.concurrency_slot = s.slot)
    order by s.slot offset ranked.nth - 1 limit 1`
  return [
    sql`picked as materialized (
      select * from (select * from keyless union all select * from keyed) as r order by ${ORDER} limit ${p('limit')})`,
    sql`wanted as materialized (
      select r.* from picked as r where r.crash_count < ${suspectFrom} or r.id = (
        select s.id from picked as s where s.crash_count >= ${suspectFrom}
        order by s.priority desc, s.available_at, s.id limit 1))`,
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
