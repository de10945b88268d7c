import { systemClock } from '@coji/durably-core'
import { type ClaimParams, type JobLimits, type RunRecord, SUSPECT_FROM } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import { inOrder, pausedJobs, slotsTaken, startOfExecution, type Take, type TakeName } from './claim-parts'
import type { Rows } from '../dialect'
import type { Executor } from '../connection'
import { type KeyWalk, KeyWalks } from './key-walks'
import { forgottenStarts, hasRoomFor, lastStart, type LimitName, limitValues, NO_LIMITS } from './limits'
import { and, runColumns, runsBy, type Sql, type SqlContext, statement, toRun } from '../statement'
import type { Watchers } from '../watch'

/** How many runs one list tries to claim: little for a queue that is empty, much for a full one. */
const FIRST_LIST = 4
const LONGEST_LIST = 64
/** From so many on one statement looks at all of them first. */
const MANY = 8

/** The search costs nothing once it has found nothing. */
const HAS_TAKEN = sql`changes() > 0`

/** After so many looks that found nothing a claim ends; the next goes on from there. */
const LOOKS_OF_A_CLAIM = 4

interface Asked {
  readonly params: ClaimParams
  readonly limits: JobLimits | null
  readonly walk: KeyWalk
}

/** For SQLite: one small update for each run, all in one list, each seeing what those before it took. */
export function createClaimOneByOne(context: SqlContext, watchers: Watchers): Take {
  const { takeSome, takeFront, goOn } = createTakes(context)
  const walks = new KeyWalks(watchers)

  /** In short lists, until one finds less than it was to find. */
  async function takeLists(executor: Executor, asked: Asked): Promise<RunRecord[]> {
    const { params, walk } = asked
    const claimed: RunRecord[] = []
    for (let size = FIRST_LIST; claimed.length < params.limit; ) {
      const limit = Math.min(size, params.limit - claimed.length)
      const more = await takeSome(executor, { ...asked, params: { ...params, limit } })
      claimed.push(...more)
      if (more.length < limit) break
      // Behind a blocked front each look takes longer.
      if (walk.isBlocked) await systemClock.turn?.()
      else size = Math.min(size * 4, LONGEST_LIST)
    }
    return claimed
  }

  return async function take(executor, params, limits) {
    const walk = walks.of(params)
    walk.begin()
    const isForMany = limits === null && params.events.length === 0 && params.limit >= MANY
    const front = isForMany ? await takeFront(executor, { params, limits, walk }) : { runs: [], isAll: false }
    const { runs } = front
    for (let [looks, hasTried] = [1, front.isAll]; runs.length < params.limit; looks++, hasTried = false) {
      const rest = { ...params, limit: params.limit - runs.length }
      if (!hasTried) runs.push(...(await takeLists(executor, { params: rest, limits, walk })))
      if (runs.length > 0) walk.beginAnew()
      // Who waits for what was found need not wait for what may come behind it.
      if (runs.length === params.limit || (runs.length > 0 && !walk.isBlocked)) break
      await goOn(executor, { params, limits, walk })
      if (walk.isOver || runs.length > 0 || looks === LOOKS_OF_A_CLAIM) break
      await systemClock.turn?.()
    }
    // Nobody else: workers that tell each other would go on for ever.
    const { workerId, limit } = params
    if (walk.isBlocked && !walk.isOver && runs.length < limit) watchers.tell({ kind: 'runs', workerId })
    return { runs, isHeldUp: false }
  }
}

function createTakes(context: SqlContext) {
  const free = { first: takeStatement(context, () => []), next: takeStatement(context, () => [HAS_TAKEN]) }
  const hasRoom = (p: Parameter) => hasRoomFor(context, p, sql`1`)
  const limited = {
    first: takeStatement(context, (p) => [hasRoom(p)]),
    next: takeStatement(context, (p) => [HAS_TAKEN, hasRoom(p)]),
  }
  const many = takeManyStatement(context)
  const event = eventStatement(context)
  const starts = startStatements(context)
  const look = lookStatement(context)
  return {
    async takeSome(executor: Executor, asked: Asked): Promise<RunRecord[]> {
      const { params, limits } = asked
      const { claimToken, events, limit } = params
      const values = valuesOf(asked)
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
    },
    /** Those in front, up to the first that has a key or is a suspect; then one that may be either, if there is any. */
    async takeFront(executor: Executor, asked: Asked) {
      const { workerId, claimToken, leaseMs, limit, jobs } = asked.params
      const values = { workerId, claimToken, leaseMs, eventCount: 0, jobs: JSON.stringify(jobs) }
      const front = many.bind({ ...values, limit: limit - 1 })
      const one = free.first.bind(valuesOf(asked))
      const [plain = [], [next]] = (await executor.write([front, one])) as [Rows, Rows]
      const runs = plain.map(toRun).sort(inOrder)
      return { runs: next === undefined ? runs : [...runs, toRun(next)], isAll: next === undefined }
    },
    /** To the next keys, where all in front are blocked. */
    async goOn(executor: Executor, asked: Asked): Promise<void> {
      const { walk } = asked
      const [next = {}] = await executor.read(look.bind(valuesOf(asked)))
      if (Number(next['is_blocked']) !== 1) return walk.end()
      walk.goOn(next['key'] === null ? null : { tenant: String(next['tenant']), key: String(next['key']) })
    },
  }
}

function valuesOf({ params, limits, walk }: Asked) {
  const { workerId, claimToken, leaseMs, events, jobs, holdsSuspect } = params
  return {
    ...{ workerId, claimToken, leaseMs, eventCount: events.length },
    ...limitValues(limits ?? NO_LIMITS),
    ...{ fromTenant: walk.place.tenant, fromKey: walk.place.key },
    jobs: JSON.stringify(jobs),
    holdsSuspect: holdsSuspect ? 1 : 0,
  }
}

type TakeOneName = TakeName | 'jobs' | 'holdsSuspect' | 'fromTenant' | 'fromKey' | LimitName
type Parameter = (name: TakeOneName) => Sql

/**
 * Claims the first run in order that may start. Its key is looked at as the statements before left it; the unique index
 * on slots is what keeps the promise, this only finds the slot.
 */
function takeStatement(context: SqlContext, conditions: (p: Parameter) => readonly Sql[]) {
  return statement<TakeOneName>(context, (p) => {
    const due = isDue(context, p)
    const first = sql`coalesce(${firstOfFront(context, due)}, ${firstByKey(context, p, due)})`
    const on = conditions(p)
    return sql`update ${context.tables.runs} as r set ${startOfExecution(context, p, { slot: freeSlot(context) })}
      where r.id = ${on.length === 0 ? first : sql`case when ${and(...on)} then ${first} end`} returning ${runColumns(context)}`
  })
}

function isDue(context: SqlContext, p: Parameter): Sql {
  const { tables, dialect, fences, prefix } = context
  // Looked at for suspects only, which are few.
  const hasTakenOne = sql`exists (select 1 from ${tables.runs} as a ${dialect.useIndex(`${prefix}runs_running`)}
    where a.status = 'running' and a.owner_id = ${p('workerId')} and a.claim_token = ${p('claimToken')}
      and a.crash_count >= ${sql.lit(SUSPECT_FROM)})`
  return and(
    fences['claim.status'](dialect.waitingStatus(sql`r.status`)),
    fences['claim.due'](dialect, lastCreated(context)),
    fences['claim.known'](p('jobs'), dialect),
    fences['claim.suspect'](sql`(${p('holdsSuspect')} = 0 and not ${hasTakenOne})`),
    fences['claim.paused'](pausedJobs(context), dialect),
  )
}

/** As many as are wanted in one statement: the runs in front, as long as none of them needs to be looked at by itself. */
function takeManyStatement(context: SqlContext) {
  const { tables, dialect, fences } = context
  return statement<TakeName | 'jobs' | 'limit'>(context, (p) => {
    const due = and(
      fences['claim.status'](dialect.waitingStatus(sql`r.status`)),
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

/** So many due runs are looked at in order; when all of them are blocked, so many behind them, and as many keys. */
const FRONT = 32
const BEYOND = 128
const KEYS_AT_ONCE = 128

const ORDER = sql`r.priority desc, r.available_at, r.id`

/** The rows come in the order of the inner query, and no more of them than are looked at. */
function firstOfFront(context: SqlContext, due: Sql): Sql {
  return sql`(select r.id from (${inFront(context, due)} limit ${sql.lit(FRONT)}) as r where ${isFree(context)} limit 1)`
}

function inFront(context: SqlContext, due: Sql): Sql {
  return sql`select r.id, r.tenant, r.concurrency_key, r.concurrency_slot, r.concurrency_limit, r.priority, r.available_at
    from ${runsBy(context, 'claim')} where ${due} order by ${ORDER}`
}

/** Whether there are more due runs than are looked at in order. */
function hasMore(context: SqlContext, due: Sql): Sql {
  return sql`exists (select 1 from ${runsBy(context, 'claim')} where ${due} order by ${ORDER} limit 1 offset ${sql.lit(FRONT - 1)})`
}

/**
 * The first without a key, the first of those that come next in order, and those of the keys behind the place where the
 * last look ended. A run that has kept its slot is never blocked.
 */
function firstByKey(context: SqlContext, p: Parameter, due: Sql): Sql {
  const { tables } = context
  const isOfKey = and(...['tenant', 'concurrency_key'].map(isOfGroup))
  const firstOfGroup = sql`select r.rowid from ${runsBy(context, 'claim_by_key')} where ${due} and r.concurrency_key is not null
    and ${isOfKey} and ${isOfGroup('concurrency_limit')} order by ${ORDER} limit 1`
  const isLookedAt = sql`k.nth <= ${sql.lit(KEYS_AT_ONCE)}`
  return sql`case when ${hasMore(context, due)} then (
    with recursive ${keysFrom(context, p)},
    found as (
      select * from (select r.id, r.priority, r.available_at from ${runsBy(context, 'claim_keyless')}
        where ${due} and r.concurrency_key is null order by ${ORDER} limit 1)
      union all select * from (select r.id, r.priority, r.available_at
        from (${inFront(context, due)} limit ${sql.lit(BEYOND)} offset ${sql.lit(FRONT)}) as r where ${isFree(context)} limit 1)
      union all select r.id, r.priority, r.available_at from keys as k cross join ${runsBy(context, 'slot')}
        where ${isLookedAt} and ${isOfKey} and r.concurrency_slot is not null and ${due}
      union all select r.id, r.priority, r.available_at from keys as k cross join ${tables.runs} as r
        where ${isLookedAt} and ${slotsTaken(context, 'k')} < k.concurrency_limit and r.rowid = (${firstOfGroup}))
    select r.id from found as r order by ${ORDER} limit 1) end`
}

function isOfGroup(column: string): Sql {
  return sql`${sql.ref(`r.${column}`)} = ${sql.ref(`k.${column}`)}`
}

/**
 * So many keys that wait, and one more, at which the next look begins. Runs of one key with the same limit are blocked
 * together: each such group is one look, however many runs it has.
 */
function keysFrom(context: SqlContext, p: Parameter): Sql {
  const byKey = runsBy(context, 'claim_by_key')
  const group = sql`r.tenant, r.concurrency_key, r.concurrency_limit`
  const nextBy = (condition: Sql) =>
    sql`(select r.rowid from ${byKey} where r.status = 'pending' and r.concurrency_key is not null and ${condition}
      order by ${group} limit 1)`
  // Each is found at once; of a comparison of all three columns SQLite looks up the first only.
  const first = sql`coalesce(
    ${nextBy(sql`r.tenant = ${p('fromTenant')} and r.concurrency_key >= ${p('fromKey')}`)},
    ${nextBy(sql`r.tenant > ${p('fromTenant')}`)})`
  const next = sql`coalesce(
    ${nextBy(sql`${isOfGroup('tenant')} and ${isOfGroup('concurrency_key')} and r.concurrency_limit > k.concurrency_limit`)},
    ${nextBy(sql`${isOfGroup('tenant')} and r.concurrency_key > k.concurrency_key`)},
    ${nextBy(sql`r.tenant > k.tenant`)})`
  const isOther = sql`(r.tenant <> k.tenant or r.concurrency_key <> k.concurrency_key)`
  const { runs } = context.tables
  return sql`keys (tenant, concurrency_key, concurrency_limit, nth) as (
      select ${group}, 1 from ${runs} as r where r.rowid = ${first}
      union all select ${group}, k.nth + ${isOther} from keys as k cross join ${runs} as r
        where k.nth <= ${sql.lit(KEYS_AT_ONCE)} and r.rowid = ${next})`
}

/** Whether all in front are blocked, and the key at which the next look begins. */
function lookStatement(context: SqlContext) {
  return statement<TakeOneName>(
    context,
    (p) => sql`with recursive ${keysFrom(context, p)}
      select front.is_blocked, next.tenant, next.concurrency_key as "key"
      from (select ${hasMore(context, isDue(context, p))} as is_blocked) as front
      left join keys as next on front.is_blocked and next.nth > ${sql.lit(KEYS_AT_ONCE)}`,
  )
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
