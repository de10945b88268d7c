import { type ClaimParams, type RunRecord, SUSPECT_FROM } from '@coji/durably-core'
import { sql } from 'kysely'
import { type Claim, slotsTaken, startOfExecution, type TakeName } from './claim'
import type { Executor } from './executor'
import { runColumns, toRun } from './rows'
import { and, runsBy, type Sql, type SqlContext, statement } from './statement'

/** How many runs one list tries to claim: little for a queue that is empty, much for a full one. */
const FIRST_LIST = 4
const LONGEST_LIST = 64

/** For SQLite: one small update for each run, all in one list, each seeing what those before it took. */
export function createClaimOneByOne(context: SqlContext): Claim {
  const takeFirst = takeStatement(context, (id) => id)
  // The search costs nothing once it has found nothing.
  const takeNext = takeStatement(context, (id) => sql`case when changes() > 0 then ${id} end`)
  const event = eventStatement(context)

  async function takeSome(executor: Executor, params: ClaimParams, limit: number): Promise<RunRecord[]> {
    const { workerId, claimToken, leaseMs, events } = params
    const values = {
      ...{ workerId, claimToken, leaseMs, eventCount: events.length },
      jobs: JSON.stringify(params.jobs),
      holdsSuspect: params.holdsSuspect ? 1 : 0,
    }
    const results = await executor.write([
      takeFirst.bind(values),
      ...Array.from({ length: limit - 1 }, () => takeNext.bind(values)),
      ...events.map(({ type, payload }, index) =>
        event.bind({ claimToken, type, payload, back: events.length - 1 - index }),
      ),
    ])
    return results.slice(0, limit).flat().map(toRun)
  }

  return async function claim(executor, params) {
    const claimed: RunRecord[] = []
    for (let size = FIRST_LIST; claimed.length < params.limit; size = Math.min(size * 4, LONGEST_LIST)) {
      const limit = Math.min(size, params.limit - claimed.length)
      const more = await takeSome(executor, params, limit)
      claimed.push(...more)
      if (more.length < limit) break
    }
    return claimed
  }
}

/**
 * Claims the first run in order that may start. Its key is looked at as the statements before left it; the unique index
 * on slots is what keeps the promise, this only finds the slot.
 */
function takeStatement(context: SqlContext, onCondition: (id: Sql) => Sql) {
  const { tables, dialect, fences, prefix } = context
  return statement<TakeName | 'jobs' | 'holdsSuspect'>(context, (p) => {
    // Looked at for suspects only, which are few.
    const hasTakenOne = sql`exists (select 1 from ${tables.runs} as a ${dialect.useIndex(`${prefix}runs_running`)}
      where a.status = 'running' and a.owner_id = ${p('workerId')} and a.claim_token = ${p('claimToken')}
        and a.crash_count >= ${sql.lit(SUSPECT_FROM)})`
    const due = and(
      fences['claim.status'](dialect),
      fences['claim.due'](dialect, lastCreated(context)),
      fences['claim.known'](p('jobs'), dialect),
      fences['claim.suspect'](sql`(${p('holdsSuspect')} = 0 and not ${hasTakenOne})`),
    )
    const first = sql`coalesce(${firstOfFront(context, due)}, ${firstByKey(context, due)})`
    return sql`update ${tables.runs} as r set ${startOfExecution(context, p, freeSlot(context))}
      where r.id = ${onCondition(first)} returning ${runColumns(context)}`
  })
}

/** So many due runs are looked at in order; when all of them are blocked, the keys are gone through. */
const FRONT = 32

const ORDER = sql`r.priority desc, r.available_at, r.id`

/** The rows come in the order of the inner query, and no more of them than are looked at. */
function firstOfFront(context: SqlContext, due: Sql): Sql {
  const front = sql`select r.id, r.tenant, r.concurrency_key, r.concurrency_slot, r.concurrency_limit
    from ${runsBy(context, 'claim')} where ${due} order by ${ORDER} limit ${sql.lit(FRONT)}`
  return sql`(select r.id from (${front}) as r where ${isFree(context)} limit 1)`
}

/**
 * Runs of one key with the same limit are blocked together: each such group is one look, however many runs it has. A run
 * that has kept its slot is never blocked.
 */
function firstByKey(context: SqlContext, due: Sql): Sql {
  const { tables } = context
  const keyed = sql`r.status = 'pending' and r.concurrency_key is not null`
  const group = sql`r.tenant, r.concurrency_key, r.concurrency_limit`
  const byKey = runsBy(context, 'claim_by_key')
  const firstGroup = sql`select ${group} from ${byKey} where ${keyed} order by ${group} limit 1`
  const nextBy = (condition: Sql) =>
    sql`(select r.rowid from ${byKey} where ${keyed} and ${condition} order by ${group} limit 1)`
  const isSame = (...columns: readonly string[]) =>
    and(...columns.map((column) => sql`${sql.ref(`r.${column}`)} = ${sql.ref(`k.${column}`)}`))
  // Each is found at once; of a comparison of all three columns SQLite looks up the first only.
  const nextGroup = sql`coalesce(
    ${nextBy(sql`${isSame('tenant', 'concurrency_key')} and r.concurrency_limit > k.concurrency_limit`)},
    ${nextBy(sql`${isSame('tenant')} and r.concurrency_key > k.concurrency_key`)},
    ${nextBy(sql`r.tenant > k.tenant`)})`
  const firstOfGroup = sql`select r.rowid from ${byKey} where ${due} and r.concurrency_key is not null
    and ${isSame('tenant', 'concurrency_key', 'concurrency_limit')} order by ${ORDER} limit 1`
  return sql`case when exists (select 1 from ${runsBy(context, 'claim')} where ${due} order by ${ORDER}
      limit 1 offset ${sql.lit(FRONT - 1)}) then (
    with recursive keys (tenant, concurrency_key, concurrency_limit) as (
      select * from (${firstGroup})
      union all select ${group} from keys as k cross join ${tables.runs} as r where r.rowid = ${nextGroup}),
    found as (
      select * from (select r.id, r.priority, r.available_at from ${runsBy(context, 'claim_keyless')}
        where ${due} and r.concurrency_key is null order by ${ORDER} limit 1)
      union all select r.id, r.priority, r.available_at from ${runsBy(context, 'slot')}
        where ${due} and r.concurrency_slot is not null
      union all select r.id, r.priority, r.available_at from keys as k cross join ${tables.runs} as r
        where ${slotsTaken(context, 'k')} < k.concurrency_limit and r.rowid = (${firstOfGroup}))
    select r.id from found as r order by ${ORDER} limit 1) end`
}

function isFree(context: SqlContext): Sql {
  return context.fences['claim.slot'](slotsTaken(context, 'r'))
}

/** When the last run was created, which is in the future only when the clock was set back since. */
function lastCreated({ tables, dialect, prefix }: SqlContext): Sql {
  return sql`(select l.created_at from ${tables.runs} as l ${dialect.useIndex(`${prefix}runs_created`)}
    order by l.created_at desc limit 1)`
}

/** The lowest slot nobody has: 0, or one above a slot in use. */
function freeSlot({ tables }: SqlContext): Sql {
  const isTaken = (slot: Sql) => sql`exists (select 1 from ${tables.runs} as a where a.concurrency_slot = ${slot}
    and a.tenant = r.tenant and a.concurrency_key = r.concurrency_key)`
  return sql`case when not ${isTaken(sql`0`)} then 0 else (
    select min(b.concurrency_slot) + 1 from ${tables.runs} as b where b.concurrency_slot is not null
      and b.tenant = r.tenant and b.concurrency_key = r.concurrency_key
      and not ${isTaken(sql`b.concurrency_slot + 1`)}) end`
}

function eventStatement(context: SqlContext) {
  const { tables, dialect } = context
  return statement<'claimToken' | 'type' | 'payload' | 'back'>(
    context,
    (p) => sql`insert into ${tables.run_events} (run_id, seq, event_type, payload, created_at)
      select r.id, r.last_event_sequence - ${p('back')}, ${p('type')}, ${p('payload')}, ${dialect.now}
      from ${runsBy(context, 'running')} where r.status = 'running' and r.claim_token = ${p('claimToken')}
      on conflict do nothing`,
  )
}
