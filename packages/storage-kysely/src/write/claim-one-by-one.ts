import { type ClaimParams, type JobLimits, type RunRecord, SUSPECT_FROM } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import { inOrder, pausedJobs, slotsTaken, startOfExecution, type Take, type TakeName } from './claim'
import type { Rows } from '../dialect'
import type { Executor } from '../connection'
import { forgottenStarts, hasRoomFor, lastStart, type LimitName, limitValues, NO_LIMITS } from './limits'
import { and, runColumns, runsBy, type Sql, type SqlContext, statement, toRun } from '../statement'

/** How many runs one list tries to claim: little for a queue that is empty, much for a full one. */
const FIRST_LIST = 4
const LONGEST_LIST = 64
/** From so many on one statement looks at all of them first. */
const MANY = 8

/** The search costs nothing once it has found nothing. */
const HAS_TAKEN = sql`changes() > 0`

/** For SQLite: one small update for each run, all in one list, each seeing what those before it took. */
export function createClaimOneByOne(context: SqlContext): Take {
  const free = { first: takeStatement(context, () => []), next: takeStatement(context, () => [HAS_TAKEN]) }
  const hasRoom = (p: Parameter) => hasRoomFor(context, p, sql`1`)
  const limited = {
    first: takeStatement(context, (p) => [hasRoom(p)]),
    next: takeStatement(context, (p) => [HAS_TAKEN, hasRoom(p)]),
  }
  const many = takeManyStatement(context)
  const event = eventStatement(context)
  const starts = startStatements(context)

  async function takeSome(executor: Executor, params: ClaimParams, limits: JobLimits | null): Promise<RunRecord[]> {
    const { workerId, claimToken, leaseMs, events, limit } = params
    const values = {
      ...{ workerId, claimToken, leaseMs, eventCount: events.length },
      ...limitValues(limits ?? NO_LIMITS),
      jobs: JSON.stringify(params.jobs),
      holdsSuspect: params.holdsSuspect ? 1 : 0,
    }
    const { first, next } = limits === null ? free : limited
    const takes = [first.bind(values), ...Array.from({ length: limit - 1 }, () => next.bind(values))]
    const told = events.map(({ type, payload }, index) =>
      event.bind({ claimToken, type, payload, back: events.length - 1 - index }),
    )
    const isCounted = limits !== null && limits.rateLimit !== null
    if (!isCounted) return (await executor.write([...takes, ...told])).slice(0, limit).flat().map(toRun)
    const note = starts.note.bind(values)
    const results = await executor.write([
      starts.setBack.bind(values),
      ...takes.flatMap((take) => [take, note]),
      ...told,
      starts.forget.bind(values),
    ])
    return results
      .slice(1, 1 + 2 * limit)
      .flat()
      .map(toRun)
  }

  /** Those in front, up to the first that has a key or is a suspect; then one that may be either, if there is any. */
  async function takeFront(executor: Executor, params: ClaimParams) {
    const { workerId, claimToken, leaseMs, limit } = params
    const values = { workerId, claimToken, leaseMs, eventCount: 0, jobs: JSON.stringify(params.jobs) }
    const front = many.bind({ ...values, limit: limit - 1 })
    const one = free.first.bind({ ...values, ...limitValues(NO_LIMITS), holdsSuspect: params.holdsSuspect ? 1 : 0 })
    const [plain = [], [next]] = (await executor.write([front, one])) as [Rows, Rows]
    const runs = plain.map(toRun).sort(inOrder)
    return { runs: next === undefined ? runs : [...runs, toRun(next)], isAll: next === undefined }
  }

  return async function take(executor, params, limits) {
    const isForMany = limits === null && params.events.length === 0 && params.limit >= MANY
    const { runs, isAll } = isForMany ? await takeFront(executor, params) : { runs: [], isAll: false }
    if (isAll) return { runs, isHeldUp: false }
    for (let size = FIRST_LIST; runs.length < params.limit; size = Math.min(size * 4, LONGEST_LIST)) {
      const limit = Math.min(size, params.limit - runs.length)
      const more = await takeSome(executor, { ...params, limit }, limits)
      runs.push(...more)
      if (more.length < limit) break
    }
    return { runs, isHeldUp: false }
  }
}

type TakeOneName = TakeName | 'jobs' | 'holdsSuspect' | LimitName
type Parameter = (name: TakeOneName) => Sql

/**
 * Claims the first run in order that may start. Its key is looked at as the statements before left it; the unique index
 * on slots is what keeps the promise, this only finds the slot.
 */
function takeStatement(context: SqlContext, conditions: (p: Parameter) => readonly Sql[]) {
  const { tables, dialect, fences, prefix } = context
  return statement<TakeOneName>(context, (p) => {
    // Looked at for suspects only, which are few.
    const hasTakenOne = sql`exists (select 1 from ${tables.runs} as a ${dialect.useIndex(`${prefix}runs_running`)}
      where a.status = 'running' and a.owner_id = ${p('workerId')} and a.claim_token = ${p('claimToken')}
        and a.crash_count >= ${sql.lit(SUSPECT_FROM)})`
    const due = and(
      fences['claim.status'](dialect),
      fences['claim.due'](dialect, lastCreated(context)),
      fences['claim.known'](p('jobs'), dialect),
      fences['claim.suspect'](sql`(${p('holdsSuspect')} = 0 and not ${hasTakenOne})`),
      fences['claim.paused'](pausedJobs(context), dialect),
    )
    const first = sql`coalesce(${firstOfFront(context, due)}, ${firstByKey(context, due)})`
    const on = conditions(p)
    return sql`update ${tables.runs} as r set ${startOfExecution(context, p, { slot: freeSlot(context) })}
      where r.id = ${on.length === 0 ? first : sql`case when ${and(...on)} then ${first} end`} returning ${runColumns(context)}`
  })
}

/** As many as are wanted in one statement: the runs in front, as long as none of them needs to be looked at by itself. */
function takeManyStatement(context: SqlContext) {
  const { tables, dialect, fences } = context
  return statement<TakeName | 'jobs' | 'limit'>(context, (p) => {
    const due = and(
      fences['claim.status'](dialect),
      fences['claim.due'](dialect, lastCreated(context)),
      fences['claim.known'](p('jobs'), dialect),
      fences['claim.paused'](pausedJobs(context), dialect),
    )
    const isPlain = sql`(r.concurrency_key is null and r.crash_count < ${sql.lit(SUSPECT_FROM)})`
    return sql`with front as materialized (
        select r.id, ${isPlain} as is_plain, row_number() over (order by ${ORDER}) as nth
        from ${runsBy(context, 'claim')} where ${due} order by ${ORDER} limit ${p('limit')})
      update ${tables.runs} as r set ${startOfExecution(context, p, { slot: sql`null` })}
      where r.id in (select f.id from front as f
        where f.nth < (select coalesce(min(o.nth), ${p('limit')} + 1) from front as o where not o.is_plain))
      returning ${runColumns(context)}`
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
export function lastCreated({ tables, dialect, prefix }: SqlContext): Sql {
  return sql`(select l.created_at from ${tables.runs} as l ${dialect.useIndex(`${prefix}runs_created`)}
    order by l.created_at desc limit 1)`
}

/** The lowest slot nobody has: 0, or one above a slot in use. */
export function freeSlot({ tables }: SqlContext): Sql {
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

/** What is written down for a rate, in the list of a claim. */
function startStatements(context: SqlContext) {
  const { tables, dialect } = context
  const newest = (p: Parameter) => sql`(select l.started_at from ${tables.job_starts} as l
    where l.job_name = ${p('jobName')} order by l.nth desc limit 1)`
  return {
    // A clock that was set back must not hold up the job until it has made up for that.
    setBack: statement<TakeOneName>(
      context,
      (p) => sql`update ${tables.job_starts} set started_at = ${dialect.now}
        where job_name = ${p('jobName')} and ${newest(p)} > ${dialect.now} and started_at > ${dialect.now}`,
    ),
    note: statement<TakeOneName>(
      context,
      (p) => sql`insert into ${tables.job_starts} (job_name, nth, started_at)
        select ${p('jobName')}, ${lastStart(context, p)} + 1, ${dialect.now} where ${HAS_TAKEN}`,
    ),
    forget: statement<TakeOneName>(context, (p) => forgottenStarts(context, p, lastStart(context, p))),
  }
}
