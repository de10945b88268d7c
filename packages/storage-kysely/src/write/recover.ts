import { type LostRun, type RecoverParams, recoveryOf, type RunRecord, SUSPECT_FROM } from '@coji/durably-core/storage'
import { type CompiledQuery, sql } from 'kysely'
import type { Executor } from '../connection'
import { createWriteLocked } from './row-locks'
import { and, runColumns, runsBy, type Sql, type SqlContext, statement, toJson, toRun, type Row } from '../statement'
import { bindEvents, eventStatement, wakeParentsStatement } from './run-events'

export type Recover = (executor: Executor, params: RecoverParams) => Promise<readonly RunRecord[]>

type SeenName = 'runId' | 'version'

/**
 * Looks first, so that the check each worker makes every second takes no write lock. The write then demands that the
 * run is as it was seen: a renewal or commit in between wins.
 */
export function createRecover(context: SqlContext, monotonic: () => number): Recover {
  const { fences } = context
  const guard = (p: (name: SeenName) => Sql) =>
    and(sql`r.id = ${p('runId')}`, fences['recover.status'](), fences['recover.unchanged'](p('version')))
  const find = findStatements(context)
  const event = eventStatement<SeenName>(context, guard)
  const wakeParents = wakeParentsStatement<SeenName>(context, guard)
  const take = takeStatement(context, guard)
  const writeLocked = createWriteLocked(context)
  const ahead = new LeasesAhead(monotonic)

  function bind(run: RunRecord & LostRun, params: RecoverParams): CompiledQuery[] {
    const { status, crashCount, delayMs, failure, events } = recoveryOf(run, params)
    const values = { runId: run.id, version: run.version }
    return [
      ...bindEvents({ statement: event, events, after: 0, values }),
      ...(status === 'pending' ? [] : [wakeParents.bind(values)]),
      take.bind({
        ...values,
        ...{ status, crashCount, delayMs },
        error: failure?.error ?? null,
        errorDetail: toJson(failure?.detail ?? null),
        eventCount: events.length,
      }),
    ]
  }

  return async function recover(executor, params) {
    const held = JSON.stringify(params.held)
    const { deadWorkerId, limit } = params
    const expired =
      deadWorkerId === null
        ? ahead.withoutLive(await executor.read(find.expired.bind({ held, limit })))
        : await executor.read(find.ofWorker.bind({ held, limit, workerId: deadWorkerId }))
    if (expired.length === 0) return []
    // A parent before its children: their end changes it.
    const found = [...expired].sort((a, b) => (String(a['id']) < String(b['id']) ? -1 : 1))
    const lists = found.map((row) => bind({ ...toRun(row), isBesideSuspect: row['is_beside_suspect'] === 1 }, params))
    const runIds = found.map((row) => String(row['id']))
    const results = await writeLocked(executor, { runIds }, lists.flat())
    let end = 0
    return lists.flatMap((list) => {
      end += list.length
      return (results[end - 1] ?? []).map(toRun)
    })
  }
}

function findStatements(context: SqlContext) {
  const { tables, dialect, fences } = context
  const isBesideSuspect = sql`exists (select 1 from ${tables.runs} as s where s.status = 'running'
    and s.owner_id = r.owner_id and s.crash_count >= ${sql.lit(SUSPECT_FROM)} and s.id <> r.id)`
  // Servers keep their clocks right, and their time is that of many machines.
  const isAhead = sql`(r.heartbeat_at > ${dialect.now} and r.lease_until > ${dialect.now})`
  const select = (
    condition: Sql,
    held: Sql,
    limit: Sql,
  ) => sql`select ${runColumns(context)}, case when ${isBesideSuspect} then 1 else 0 end as is_beside_suspect, case when ${isAhead} then 1 else 0 end as is_ahead
    from ${runsBy(context, 'running')} where ${and(fences['recover.status'](), condition, fences['recover.notHeld'](held, dialect))}
    order by ${isAhead}, r.crash_count >= ${sql.lit(SUSPECT_FROM)}, r.lease_until, r.id limit ${limit} ${dialect.unlessLocked}`
  return {
    expired: statement<'held' | 'limit'>(context, (p) =>
      select(fences['recover.expired'](dialect, dialect.hasClockOfCaller ? isAhead : undefined), p('held'), p('limit')),
    ),
    ofWorker: statement<'held' | 'limit' | 'workerId'>(context, (p) =>
      select(fences['recover.owner'](p('workerId')), p('held'), p('limit')),
    ),
  }
}

function takeStatement(context: SqlContext, guard: (p: (name: SeenName) => Sql) => Sql) {
  const { tables, dialect } = context
  type Name = SeenName | 'status' | 'crashCount' | 'delayMs' | 'error' | 'errorDetail' | 'eventCount'
  return statement<Name>(context, (p) => {
    const status = p('status')
    const isPending = sql`${status} = 'pending'`
    const place = sql`case when ${p('delayMs')} = 0 then r.created_at else ${dialect.nowPlus(p('delayMs'))} end`
    return sql`update ${tables.runs} as r set status = ${status}, version = r.version + 1, updated_at = ${dialect.now},
        lease_epoch = r.lease_epoch + 1, crash_count = ${p('crashCount')},
        claim_token = null, owner_id = null, lease_until = null, waiting_for = null,
        available_at = case when ${isPending} then ${place} else r.available_at end,
        concurrency_slot = case when ${isPending} and r.hold_key_while_waiting = 1 then r.concurrency_slot end,
        finished_at = case when not (${isPending}) then ${dialect.now} end,
        error = coalesce(${p('error')}, r.error), error_detail = coalesce(${p('errorDetail')}, r.error_detail),
        last_event_sequence = r.last_event_sequence + ${p('eventCount')}
      where ${guard(p)} returning ${runColumns(context)}`
  })
}

interface Watched {
  readonly heartbeatAt: unknown
  readonly since: number
}

/**
 * Leases that were renewed in the future: the clock has been set back since, and by the clock they would hold as much
 * longer. Whoever lives renews them by the new clock. One that is left as it is for as long as it was given has run out,
 * by the time that passed here.
 */
export class LeasesAhead {
  readonly #monotonic: () => number
  #watched = new Map<unknown, Watched>()

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic
  }

  /** Those of the rows whose lease has run out, by the clock or without it. */
  withoutLive(rows: readonly Row[]): readonly Row[] {
    const before = this.#watched
    this.#watched = new Map()
    return rows.filter((row) => row['is_ahead'] !== 1 || this.#hasRunOut(row, before.get(row['id'])))
  }

  #hasRunOut(row: Row, before: Watched | undefined): boolean {
    const { id, heartbeat_at: heartbeatAt, lease_until: leaseUntil } = row
    const now = this.#monotonic()
    const since = before !== undefined && before.heartbeatAt === heartbeatAt ? before.since : now
    this.#watched.set(id, { heartbeatAt, since })
    return now - since >= Date.parse(String(leaseUntil)) - Date.parse(String(heartbeatAt))
  }
}
