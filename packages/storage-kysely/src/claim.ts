import type { ClaimParams, RunRecord } from '@coji/durably-core'
import { sql } from 'kysely'
import type { Executor } from './executor'
import { runColumns, toRun } from './rows'
import { and, list, runsBy, type Sql, type SqlContext, statement } from './statement'

export type Claim = (executor: Executor, params: ClaimParams) => Promise<readonly RunRecord[]>

/** How many runs one list tries to claim: little for a queue that is empty, much for a full one. */
const FIRST_LIST = 4
const LONGEST_LIST = 64

export function createClaim(context: SqlContext): Claim {
  const takeFirst = takeStatement(context, (id) => id)
  const takeNext = takeStatement(context, context.dialect.unlessLastFoundNone)
  const event = eventStatement(context)
  const find = findStatement(context)

  async function takeSome(executor: Executor, params: ClaimParams, limit: number): Promise<RunRecord[]> {
    const { workerId, claimToken, leaseMs, events } = params
    const values = { workerId, claimToken, leaseMs, jobs: JSON.stringify(params.jobs), eventCount: events.length }
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
    if (params.repeat === true) {
      const rows = await executor.read(find.bind({ claimToken: params.claimToken }))
      return rows.map(toRun).sort(inOrder)
    }
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

type TakeName = 'workerId' | 'claimToken' | 'leaseMs' | 'jobs' | 'eventCount'

/**
 * Claims the first run in order that may start. Its key is looked at as the statements before left it; the unique index
 * on slots is what keeps the promise, this only finds the slot.
 */
function takeStatement(context: SqlContext, onCondition: (id: Sql) => Sql) {
  const { tables, dialect, fences } = context
  return statement<TakeName>(context, (p) => {
    const candidate = and(
      fences['claim.status'](),
      fences['claim.due'](dialect),
      fences['claim.known'](p('jobs'), dialect),
      fences['claim.slot'](slotsTaken(context)),
    )
    const first = sql`(select r.id from ${runsBy(context, 'claim')} where ${candidate}
      order by r.priority desc, r.available_at, r.id limit 1)`
    return sql`update ${tables.runs} as r set ${startOfExecution(context, p)}
      where r.id = ${onCondition(first)} returning ${runColumns(context)}`
  })
}

function startOfExecution(context: SqlContext, p: (name: TakeName) => Sql): Sql {
  const { dialect } = context
  const deadline = sql`case when r.deadline_at is null and r.timeout_ms is not null
    then ${dialect.nowPlus(sql`r.timeout_ms`)} else r.deadline_at end`
  return list(
    sql`status = 'running'`,
    sql`version = r.version + 1`,
    sql`lease_epoch = r.lease_epoch + 1`,
    sql`claim_token = ${p('claimToken')}`,
    sql`owner_id = ${p('workerId')}`,
    sql`lease_until = ${dialect.nowPlus(p('leaseMs'))}`,
    sql`leader_epoch = null`,
    sql`commit_no = 0`,
    sql`concurrency_slot = case when r.concurrency_key is not null then coalesce(r.concurrency_slot, ${freeSlot(context)}) end`,
    sql`waiting_for = null`,
    sql`deadline_at = ${deadline}`,
    sql`started_at = coalesce(r.started_at, ${dialect.now})`,
    sql`heartbeat_at = ${dialect.now}`,
    sql`updated_at = ${dialect.now}`,
    sql`last_event_sequence = r.last_event_sequence + ${p('eventCount')}`,
  )
}

/** Slots in use among those that the run's own limit allows. */
function slotsTaken({ tables }: SqlContext): Sql {
  return sql`(select count(*) from ${tables.runs} as a where a.concurrency_slot is not null
    and a.tenant = r.tenant and a.concurrency_key = r.concurrency_key and a.concurrency_slot < r.concurrency_limit)`
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

function findStatement(context: SqlContext) {
  return statement<'claimToken'>(
    context,
    (p) => sql`select ${runColumns(context)} from ${runsBy(context, 'running')}
      where r.status = 'running' and r.claim_token = ${p('claimToken')}`,
  )
}

function inOrder(a: RunRecord, b: RunRecord): number {
  if (a.priority !== b.priority) return b.priority - a.priority
  return compare(a.availableAt ?? '', b.availableAt ?? '') || compare(a.id, b.id)
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b)
}
