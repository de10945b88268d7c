import {
  SUSPECT_FROM,
  type TenantPlace,
  type Waiting,
  type WaitingQuery,
  type WaitingRun,
} from '@coji/durably-core/storage'
import { sql } from 'kysely'
import type { Reader } from '../read'
import { lastCreated, pausedJobs, slotsTaken } from '../write'
import { and, type Row, rowsOf, runsBy, type Sql, type SqlContext, statement } from '../statement'

type Parameter<TName extends string> = (name: TName) => Sql

const ORDER = sql`r.priority desc, r.available_at, r.id`

/** What a leader looks at: a part of the tenants that wait, the first runs of each, and what every tenant has in hand. */
export function createWaiting(context: SqlContext) {
  const walk = walkStatement(context)
  const heads = headsStatement(context)
  const loads = loadsStatement(context)
  return async function waiting(reader: Reader, query: WaitingQuery): Promise<Waiting> {
    const jobs = JSON.stringify(query.jobs)
    const places = placesOf(query)
    const walked = await reader.read(walk.bind({ places: JSON.stringify(places), limit: query.tenants }))
    const looked = walked.filter((row) => Number(row['nth']) <= query.tenants).map(toPlace)
    const rows = await reader.read(
      heads.bind({
        jobs,
        suspectsOf: JSON.stringify(query.suspectsOf),
        places: JSON.stringify(looked.map((place, n) => ({ n, ...place }))),
        perJob: query.limitEach,
        limit: query.limitEach * query.jobs.length,
      }),
    )
    const held = await reader.read(loads.bind({ jobs }))
    return {
      runs: rows.map(toWaiting),
      loads: held.map((row) => ({ tenant: String(row['tenant']), held: Number(row['held']) })),
      upTo: walked.filter((row) => Number(row['nth']) > query.tenants).flatMap((row) => lastOf(looked, row)),
    }
  }
}

function placesOf({ jobs, from }: WaitingQuery) {
  return jobs.map((jobName, n) => {
    return { n, jobName, tenant: from.find((place) => place.jobName === jobName)?.tenant ?? '' }
  })
}

function lastOf(looked: readonly TenantPlace[], more: Row): readonly TenantPlace[] {
  const last = looked.filter(({ jobName }) => jobName === more['job_name']).at(-1)
  return last === undefined ? [] : [last]
}

/** The tenants of each job, in their order: each is one look into the index. One more than wanted tells that there are more. */
function walkStatement(context: SqlContext) {
  const next = (jobName: Sql, tenant: Sql) => sql`(select r.tenant from ${runsBy(context, 'placing')}
    where ${isPlaced(context)} and r.job_name = ${jobName} and r.tenant > ${tenant} order by r.tenant limit 1)`
  return statement<'places' | 'limit'>(
    context,
    (p) => sql`with recursive walk (job_name, tenant, nth) as (
        select t."jobName", ${next(sql`t."jobName"`, sql`t.tenant`)}, 1
        from ${rowsOf(context, p('places'), ['jobName', 'tenant'])}
        union all select w.job_name, ${next(sql`w.job_name`, sql`w.tenant`)}, w.nth + 1 from walk as w
        where w.tenant is not null and w.nth <= ${p('limit')})
      select job_name, tenant, nth from walk where tenant is not null order by job_name, nth`,
  )
}

function isPlaced({ dialect }: SqlContext): Sql {
  return sql`${dialect.waitingStatus(sql`r.status`)} = 'pending' and r.tenant <> ''`
}

function headsStatement(context: SqlContext) {
  const { dialect, tables } = context
  return statement<'places' | 'jobs' | 'suspectsOf' | 'perJob' | 'limit'>(context, (p) => {
    const ready = readyIn(context, p('suspectsOf'))
    const known = dialect.isOneOf(sql`r.job_name`, p('jobs'))
    const ofNobody = (part: Sql) => sql`select * from (select r.id from ${runsBy(context, 'claim')}
      where ${dialect.waitingStatus(sql`r.status`)} = 'pending' and r.tenant = '' and ${part} and ${known} and ${ready}
      order by ${ORDER} limit ${p('limit')}) as front`
    const orphaned = sql`select * from (select r.id from ${runsBy(context, 'orphaned')}
      where r.status = 'orphaned' and ${known} and ${ready} order by ${ORDER} limit ${p('limit')}) as lost`
    const fronts = dialect.waitingParts.map(ofNobody)
    const found = sql.join([ofTenants(context, p, ready), ...fronts, orphaned], sql` union all `)
    return sql`with found as (${found})
      select r.id, r.version, r.job_name, r.tenant, r.priority, ${dialect.read(sql`r.available_at`, 'instant')} as available_at,
        r.crash_count, r.concurrency_key, r.concurrency_slot, r.concurrency_limit - ${slotsTaken(context, 'r')} as room
      from found join ${tables.runs} as r on r.id = found.id order by ${ORDER}`
  })
}

/** Due, not held up by a key or a pause, and no suspect that nobody takes. */
function readyIn(context: SqlContext, suspectsOf: Sql): Sql {
  const { dialect, fences } = context
  return and(
    fences['claim.due'](dialect, dialect.hasClockOfCaller ? lastCreated(context) : undefined),
    sql`(r.concurrency_key is null or r.concurrency_slot is not null or ${slotsTaken(context, 'r')} < r.concurrency_limit)`,
    dialect.isNoneOf(sql`r.job_name`, pausedJobs(context)),
    fences['claim.suspect'](dialect.isOneOf(sql`r.job_name`, suspectsOf)),
  )
}

function ofTenants(context: SqlContext, p: Parameter<'places' | 'perJob'>, ready: Sql): Sql {
  const { dialect, tables } = context
  const places = rowsOf(context, p('places'), ['jobName', 'tenant'])
  const head = (what: Sql) => sql`select ${what} from ${runsBy(context, 'placing')} where ${isPlaced(context)}
    and r.job_name = t."jobName" and r.tenant = t.tenant and ${ready} order by ${ORDER} limit ${p('perJob')}`
  return dialect.idsForEach(places, tables.runs, head)
}

/** Assigned and running: both have an index of their own, which has nothing else. */
function loadsStatement(context: SqlContext) {
  const { dialect } = context
  return statement<'jobs'>(context, (p) => {
    const known = dialect.isOneOf(sql`r.job_name`, p('jobs'))
    const held = (status: 'running' | 'assigned') =>
      sql`select r.tenant from ${runsBy(context, status)}
        where ${status === 'running' ? sql`r.status` : dialect.waitingStatus(sql`r.status`)} = ${sql.lit(status)} and ${known}`
    return sql`select h.tenant, count(*) as held from (${held('running')} union all ${held('assigned')}) as h
      group by h.tenant`
  })
}

function toPlace(row: Row): TenantPlace {
  return { jobName: String(row['job_name']), tenant: String(row['tenant']) }
}

function toWaiting(row: Row): WaitingRun {
  const needsSlot = row['concurrency_key'] !== null && row['concurrency_slot'] === null
  return {
    runId: String(row['id']),
    version: Number(row['version']),
    jobName: String(row['job_name']),
    tenant: String(row['tenant']),
    priority: Number(row['priority']),
    availableAt: String(row['available_at']),
    isSuspect: Number(row['crash_count']) >= SUSPECT_FROM,
    concurrencyKey: needsSlot ? String(row['concurrency_key']) : null,
    roomOfKey: needsSlot ? Number(row['room']) : 1,
  }
}
