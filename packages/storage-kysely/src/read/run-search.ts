import {
  type CountQuery,
  RUN_STATUSES,
  type RunCursor,
  type RunQuery,
  type RunStatus,
} from '@coji/durably-core/storage'
import { sql } from 'kysely'
import { and, runColumns, type RunIndex, runsBy, type Sql, type SqlContext, type SqlValue } from '../statement'

/** The runs of a query, newest first. */
export function runsQuery(context: SqlContext, query: RunQuery): Sql {
  const { statuses = [], limit } = query
  if (limit === undefined || statuses.length < 2)
    return sql`select ${runColumns(context, 'r')} ${pageOf(context, query)}`
  // The newest of each: one status has its place in an index, a list of them has none.
  const newest = statuses.map((status) => {
    return sql`select * from (select r.id ${pageOf(context, { ...query, statuses: [status] })}) as newest`
  })
  return sql`select ${runColumns(context, 'r')} from ${runsBy(context, 'primary')}
    where r.id in (${sql.join(newest, sql` union all `)}) order by r.created_at desc, r.id desc limit ${limit}`
}

/** Of the pending ones, those that are counted apart. */
export const WAITS = ['retry', 'unpark'] as const

/** One statement, so that no run is counted twice or left out because it changes between two. */
export function countsQuery(context: SqlContext, query: CountQuery): Sql {
  const { upTo, tenant: _, jobNames: __, ...others } = query
  const isWhole = upTo === undefined && Object.values(others).every((condition) => condition === undefined)
  return isWhole ? wholeCounts(context, query) : cappedCounts(context, query)
}

const NO_LIMIT = 2 ** 31

/** The numbers by status come from an index alone. */
function wholeCounts(context: SqlContext, query: CountQuery): Sql {
  const { tables } = context
  const scope = countable(context, query)
  const kind = waitsFor(context)
  const kinds = sql.join(WAITS.map((each) => sql.lit(each)))
  const waiting = and(...scope, sql`r.status = 'pending'`, sql`${kind} in (${kinds})`)
  return sql`select r.status, count(*) as runs from ${tables.runs} as r ${where(scope)} group by r.status
    union all select ${kind}, count(*) as runs from ${tables.runs} as r where ${waiting} group by ${kind}`
}

/** Each number from the index that has its runs. */
function cappedCounts(context: SqlContext, { upTo = NO_LIMIT, ...query }: CountQuery): Sql {
  const { jobNames, tenant: _, statuses, ...others } = query
  const isOfOneJob = jobNames?.length === 1 && Object.values(others).every((condition) => condition === undefined)
  if (!isOfOneJob || statuses?.length === 0) return countsEach(context, { upTo, query, guard: [] })
  const each = countsEach(context, { upTo, query, guard: [sql`not (${areFew})`] })
  return sql`with ${ofOneJob(context, query)} ${countsOfFew(query)} union all ${each}`
}

/** Of a job with no more runs than these all are looked at: fewer than those that have failed in a large database. */
const FEW = 10_000

const areFew = sql`(select size.runs from size) <= ${sql.lit(FEW)}`

function ofOneJob(context: SqlContext, query: RunQuery): Sql {
  const index = query.tenant === undefined ? 'job_created' : 'tenant_job'
  return sql`few (status, kind) as materialized (
      select r.status, ${waitsFor(context)} from ${runsBy(context, index)} ${where(countable(context, query))} limit ${sql.lit(FEW + 1)}
    ), size (runs) as materialized (select count(*) from few)`
}

function countsOfFew({ statuses = RUN_STATUSES }: RunQuery): Sql {
  const wanted = sql`few.status in (${sql.join(statuses.map((status) => sql.lit(status)))})`
  const kinds = sql.join(WAITS.map((each) => sql.lit(each)))
  return sql`select few.status, count(*) as runs from few where ${areFew} and ${wanted} group by few.status
    union all select few.kind, count(*) as runs from few
      where ${areFew} and ${wanted} and few.status = 'pending' and few.kind in (${kinds}) group by few.kind`
}

interface CountsOfEach {
  readonly upTo: number
  readonly query: RunQuery
  /** Without them nothing is looked at. */
  readonly guard: readonly Sql[]
}

function countsEach(context: SqlContext, { upTo, query, guard }: CountsOfEach): Sql {
  const { statuses = RUN_STATUSES, waitsForRetry, parked } = query
  const count = (name: string, wanted: RunQuery) => {
    const { from, conditions } = walkOf(context, wanted)
    const found = sql`select 1 as one from ${from} ${where([...guard, ...conditions])} limit ${upTo}`
    return sql`select ${sql.lit(name)} as status, count(*) as runs from (${found}) as found`
  }
  const counted = [
    ...statuses.map((status) => count(status, { ...query, statuses: [status] })),
    ...(waitsForRetry === false ? [] : [count('retry', { ...query, waitsForRetry: true })]),
    ...(parked === false ? [] : [count('unpark', { ...query, parked: true })]),
  ]
  return counted.length === 0 ? sql`select 'none' as status, 0 as runs` : sql.join(counted, sql` union all `)
}

/** What is walked through, in the order of the list where there is an index that has it. */
interface Walk {
  readonly from: Sql
  readonly conditions: readonly Sql[]
  readonly place: readonly [createdAt: Sql, id: Sql]
}

function pageOf(context: SqlContext, query: RunQuery): Sql {
  const { cursor, limit } = query
  const { from, conditions, place } = walkOf(context, query)
  const all = [...conditions, ...(cursor === undefined ? [] : [isAfter(cursor, place, context)])]
  const [createdAt, id] = place
  return sql`from ${from} ${where(all)} order by ${createdAt} desc, ${id} desc ${limit === undefined ? sql`` : sql`limit ${limit}`}`
}

const OF_RUN = [sql`r.created_at`, sql`r.id`] as const
const OF_LABEL = [sql`q.created_at`, sql`q.run_id`] as const

function walkOf(context: SqlContext, query: RunQuery): Walk {
  const { labels = {}, waitsForKinds } = query
  const index = indexFor(query)
  const conditions = conditionsOf(context, query)
  if (waitsForKinds !== undefined)
    return waitingFor(context, waitsForKinds, [...conditions, ...labelled(context, labels)])
  const [first, ...others] = Object.entries(labels)
  if (first !== undefined && !isNarrow(index)) {
    return byLabel(context, { ...query, label: first }, [
      ...conditions,
      ...labelled(context, Object.fromEntries(others)),
    ])
  }
  const from = index === null ? sql`${context.tables.runs} as r` : runsBy(context, index)
  return { from, conditions: [...conditions, ...labelled(context, labels)], place: OF_RUN }
}

/** SQLite has no statistics of which it could tell what is rare: this is the order in which conditions are likely to be. */
function indexFor(query: RunQuery): RunIndex | null {
  const { ids, idPrefix, parentRunId, holdingKey, errorCode, tenant, jobNames, statuses } = query
  if (ids !== undefined || (idPrefix !== undefined && idPrefix !== '')) return 'primary'
  if (parentRunId !== undefined) return 'parent'
  if (holdingKey !== undefined) return tenant === undefined ? null : 'slot'
  if (errorCode !== undefined) return 'error_code'
  if (query.parked === true) return 'due'
  const [status] = statuses?.length === 1 ? statuses : []
  // Most runs have completed. Few have any other status.
  const isRare = query.waitsForRetry === true || (status !== undefined && status !== 'completed')
  if (isRare) return tenant === undefined ? 'status_created' : 'tenant_status'
  if (jobNames?.length === 1) return tenant === undefined ? 'job_created' : 'tenant_job'
  if (status !== undefined) return tenant === undefined ? 'status_created' : 'tenant_status'
  return tenant === undefined ? 'created' : 'tenant_created'
}

function isNarrow(index: RunIndex | null): boolean {
  return index === null || ['primary', 'parent', 'slot', 'error_code', 'due'].includes(index)
}

interface LabelQuery extends RunQuery {
  readonly label: readonly [name: string, value: string]
}

function byLabel(
  { tables, dialect, prefix }: SqlContext,
  { label, tenant }: LabelQuery,
  conditions: readonly Sql[],
): Walk {
  const [name, value] = label
  const index = dialect.useIndex(`${prefix}run_labels_${tenant === undefined ? 'value' : 'tenant_value'}`)
  const ofLabel = [
    ...(tenant === undefined ? [] : [sql`q.tenant = ${tenant}`]),
    sql`q.name = ${name} and q.value = ${value} and r.id = q.run_id`,
  ]
  // The order in which SQLite reads them is that in which they are named.
  const from = sql`${tables.run_labels} as q ${index} cross join ${tables.runs} as r`
  return { from, conditions: [...ofLabel, ...conditions], place: OF_LABEL }
}

function waitingFor(context: SqlContext, kinds: readonly string[], conditions: readonly Sql[]): Walk {
  const { tables } = context
  const waiting = sql`select distinct s.run_id from ${tables.steps} as s
    where s.status = 'waiting' and ${oneOf(sql`s.kind`, kinds, context)}`
  const suspended = [sql`r.id = w.run_id and r.status = 'pending'`, sql`${waitsFor(context)} = 'steps'`]
  return {
    from: sql`(${waiting}) as w cross join ${tables.runs} as r`,
    conditions: [...suspended, ...conditions],
    place: OF_RUN,
  }
}

function conditionsOf(context: SqlContext, query: RunQuery): readonly Sql[] {
  const { ids, statuses, waitsForRetry, parked, parentRunId, holdingKey, errorCode, idPrefix } = query
  const { dialect } = context
  const instant = (at: string) => dialect.parameter(sql`${at}`, 'instant')
  return [
    ...(ids === undefined ? [] : [oneOf(sql`r.id`, ids, context)]),
    ...(statuses === undefined ? [] : [isOfStatuses(statuses, context)]),
    ...countable(context, query),
    ...(waitsForRetry === undefined ? [] : [waits(context, 'retry', waitsForRetry)]),
    ...(waitsForRetry === true ? [sql`r.status = 'pending'`] : []),
    ...(parked === undefined ? [] : [waits(context, 'unpark', parked)]),
    ...(parked === true ? isParked(context) : []),
    ...(parentRunId === undefined ? [] : [sql`r.parent_run_id = ${parentRunId}`]),
    ...(holdingKey === undefined ? [] : [sql`r.concurrency_key = ${holdingKey} and r.concurrency_slot is not null`]),
    ...(query.createdFrom === undefined ? [] : [sql`r.created_at >= ${instant(query.createdFrom)}`]),
    ...(query.createdBefore === undefined ? [] : [sql`r.created_at < ${instant(query.createdBefore)}`]),
    ...(idPrefix === undefined ? [] : [beginsWith(sql`r.id`, idPrefix)]),
    ...(errorCode === undefined ? [] : [sql`r.error_detail is not null and ${codeOf(context)} = ${errorCode}`]),
  ]
}

/** Without an index of their own they are among those that are not due, and few others are. */
function isParked(context: SqlContext): readonly Sql[] {
  if (context.dialect.hasIndexOfParked) return [sql`r.status = 'pending'`]
  return [isWaiting(context), sql`r.available_at is null`]
}

function labelled({ tables }: SqlContext, labels: Readonly<Record<string, string>>): readonly Sql[] {
  return Object.entries(labels).map(
    ([name, value]) => sql`exists (select 1 from ${tables.run_labels} as q2
      where q2.run_id = r.id and q2.name = ${name} and q2.value = ${value})`,
  )
}

/** No id has a character after this one. */
function beginsWith(column: Sql, prefix: string): Sql {
  return sql`${column} >= ${prefix} and ${column} < ${`${prefix}~`}`
}

function codeOf({ dialect }: SqlContext): Sql {
  return dialect.property(sql`r.error_detail`, 'code')
}

function waitsFor({ dialect }: SqlContext): Sql {
  return dialect.property(sql`r.waiting_for`, 'kind')
}

function waits(context: SqlContext, kind: (typeof WAITS)[number], wanted: boolean): Sql {
  const found = waitsFor(context)
  return wanted ? sql`${found} = ${sql.lit(kind)}` : sql`(${found} is null or ${found} <> ${sql.lit(kind)})`
}

export function isWaiting({ dialect }: SqlContext): Sql {
  return sql`${dialect.waitingStatus(sql`r.status`)} = 'pending'`
}

function countable(context: SqlContext, { jobNames, tenant }: CountQuery): Sql[] {
  return [
    ...(jobNames === undefined ? [] : [isOfJobs(jobNames, context)]),
    ...(tenant === undefined ? [] : [sql`r.tenant = ${tenant}`]),
  ]
}

/** Equality where it will do: a planner makes more of it than of a list. */
export function isOfJobs(jobNames: readonly string[], context: SqlContext): Sql {
  const [jobName] = jobNames
  if (jobNames.length === 1 && jobName !== undefined) return sql`r.job_name = ${jobName}`
  return oneOf(sql`r.job_name`, jobNames, context)
}

/** Instants have no more than the milliseconds that the text shows, so that the place is exact. */
function isAfter({ createdAt, id }: RunCursor, [atColumn, idColumn]: Walk['place'], { dialect }: SqlContext): Sql {
  return sql`(${atColumn}, ${idColumn}) < (${dialect.parameter(sql`${createdAt}`, 'instant')}, ${id})`
}

function oneOf(column: Sql, values: readonly SqlValue[], { dialect }: SqlContext): Sql {
  return sql`${column} in (select value from ${dialect.listOf(sql`${JSON.stringify(values)}`)})`
}

/** One alone stands in the text, so that its rarity is known when the way to its runs is chosen. */
function isOfStatuses(statuses: readonly RunStatus[], context: SqlContext): Sql {
  const [only] = statuses
  const isOne = only !== undefined && statuses.length === 1 && RUN_STATUSES.includes(only)
  return isOne ? sql`r.status = ${sql.lit(only)}` : oneOf(sql`r.status`, statuses, context)
}

function where(conditions: readonly Sql[]): Sql {
  return conditions.length === 0 ? sql`` : sql`where ${and(...conditions)}`
}
