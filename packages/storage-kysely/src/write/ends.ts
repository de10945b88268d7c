import type { PurgeParams, RunStatus } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import { isOfJobs, isOfStatuses, isOfTenant, MOST_JOBS } from '../read'
import { and, awaitersOf, list, type Row, runsBy, type Sql, type SqlContext } from '../statement'

/** Where a run is among all that have ended. */
export interface Ended {
  readonly finishedAt: string
  readonly id: string
}

export function endedOf(row: Row): Ended {
  return { finishedAt: String(row['finished_at']), id: String(row['id']) }
}

export interface EndsQuery extends PurgeParams {
  /** The page begins behind it. */
  readonly last: Ended | undefined
}

/** Those who wait for the run `r`: its parent, and who else has asked for it by its key. */
function awaiterOf(context: SqlContext): Sql {
  return sql`select 1 from ${context.tables.runs} as parent where ${context.dialect.isAmong(sql`parent.id`, awaitersOf(context))}`
}

/** Of an ended run: whether nobody who waits for it is still at work. */
export function isUnneeded(context: SqlContext): Sql {
  return context.fences['purge.unneeded'](awaiterOf(context))
}

/** Ended runs in the order of their ends, as one index has them. */
interface Walk {
  readonly entries: Sql
  readonly conditions: readonly Sql[]
  /** What the index has before the ends. */
  readonly status: RunStatus | undefined
}

/**
 * A page of those that have ended first. Who waits for them is looked up afterwards, since what that costs is nothing that
 * Postgres could know.
 */
export function oldestEnds(context: SqlContext, query: EndsQuery): Sql {
  const { dialect, tables } = context
  const { keepNewest = 0, limit } = query
  const walks = walksOf(context, query)
  const isOne = walks.every(({ status }) => status === undefined)
  const page = merged(
    walks.map((walk) => {
      const conditions = [...startOf(context, walk, query.last), ...boundsOf(context, walk, query)]
      return endsOf(walk, { columns: isOne ? COLUMNS : PLACE, order: UP, conditions, count: limit })
    }),
    { order: UP, end: sql`limit ${limit}` },
  )
  // Of many pages one is left: its runs alone are read.
  const runs = isOne ? sql`page as r` : dialect.withRun(sql`page`, tables.runs, sql`page.id`)
  return sql`with ${keepNewest === 0 ? sql`` : keptOf(context, { walks, keepNewest })} page as materialized (${page})
    select r.id, r.version, r.last_event_sequence + r.current_step_index as weight,
      ${dialect.read(sql`r.finished_at`, 'instant')} as finished_at, ${isUnneeded(context)} as is_unneeded
    from ${runs} ${isOne ? sql`` : sql`where r.id = page.id`} order by r.finished_at, r.id`
}

/** The last of those that are not kept. */
function keptOf(
  context: SqlContext,
  { walks, keepNewest }: { readonly walks: readonly Walk[]; readonly keepNewest: number },
): Sql {
  const newest = walks.map((walk) => {
    return endsOf(walk, {
      columns: PLACE,
      order: DOWN,
      conditions: startOf(context, walk, undefined),
      count: keepNewest + 1,
    })
  })
  return sql`kept as materialized (${merged(newest, { order: DOWN, end: sql`limit 1 offset ${keepNewest}` })}),`
}

/** One of each job and status, so that none passes the runs of others; else one of all, and what is asked is asked of each run. */
function walksOf(context: SqlContext, { jobNames, statuses, tenant }: EndsQuery): readonly Walk[] {
  const hasEnded = [sql`r.finished_at is not null`, ...(tenant === undefined ? [] : [isOfTenant(tenant)])]
  const jobs = [...new Set(jobNames)]
  if (jobNames === undefined || jobs.length > MOST_JOBS) {
    const ofJobs = jobNames === undefined ? [] : [isOfJobs(jobs, context)]
    const conditions = [...hasEnded, isOfStatuses(statuses, context), ...ofJobs]
    return [{ entries: runsBy(context, 'finished'), conditions, status: undefined }]
  }
  return jobs.flatMap((job) =>
    [...new Set(statuses)].map((status) => {
      const conditions = [...hasEnded, isOfJobs([job], context)]
      return { entries: runsBy(context, 'job_finished'), conditions, status }
    }),
  )
}

const UP = sql`asc`
const DOWN = sql`desc`
const PLACE = [sql`r.finished_at`, sql`r.id`] as const

/** No index has all of them: else one in which they are in another order would look shorter to Postgres. */
const COLUMNS = [
  ...[...PLACE, sql`r.version`, sql`r.parent_run_id`, sql`r.also_awaited_by`],
  ...[sql`r.last_event_sequence`, sql`r.current_step_index`],
] as const

interface Reading {
  readonly columns: readonly Sql[]
  readonly order: Sql
  readonly conditions: readonly Sql[]
  readonly count: number
}

function endsOf({ entries, conditions: own, status }: Walk, { columns, order, conditions, count }: Reading): Sql {
  const places = [...(status === undefined ? [] : [sql`r.status`]), ...PLACE].map((column) => sql`${column} ${order}`)
  return sql`select ${list(...columns)} from ${entries} where ${and(...own, ...conditions)}
    order by ${list(...places)} limit ${count}`
}

function merged(walks: readonly Sql[], { order, end }: { readonly order: Sql; readonly end: Sql }): Sql {
  const each = walks.map((walk) => sql`select * from (${walk}) as walk`)
  return sql`select * from (${sql.join(each, sql` union all `)}) as ends
    order by ends.finished_at ${order}, ends.id ${order} ${end}`
}

/** From where a walk is read, and that it is left where its status ends. */
function startOf(context: SqlContext, walk: Walk, last: Ended | undefined): readonly Sql[] {
  const { dialect } = context
  const behind = (ended: Ended) =>
    isAt(context, walk, { operator: sql`>`, place: [instant(context, ended.finishedAt), sql`${ended.id}`] })
  if (walk.status === undefined) return last === undefined ? [] : [behind(last)]
  if (dialect.takesIndexes) return [isOfStatuses([walk.status], context), ...(last === undefined ? [] : [behind(last)])]
  const from = last === undefined ? isAt(context, walk, { operator: sql`>=`, place: [] }) : behind(last)
  return [from, isAt(context, walk, { operator: sql`<=`, place: [] })]
}

function boundsOf(context: SqlContext, walk: Walk, { olderThanMs, before, keepNewest = 0 }: EndsQuery): readonly Sql[] {
  const isBefore = (at: Sql) => isAt(context, walk, { operator: sql`<`, place: [at] })
  const kept = [sql`(select kept.finished_at from kept)`, sql`(select kept.id from kept)`]
  return [
    ...(olderThanMs === undefined ? [] : [isBefore(context.dialect.nowPlus(sql`${-olderThanMs}`))]),
    ...(before === undefined ? [] : [isBefore(instant(context, before))]),
    ...(keepNewest === 0 ? [] : [isAt(context, walk, { operator: sql`<=`, place: kept })]),
  ]
}

function instant({ dialect }: SqlContext, at: string): Sql {
  return dialect.parameter(sql`${at}`, 'instant')
}

interface Bound {
  readonly operator: Sql
  /** As much of it as is compared. */
  readonly place: readonly Sql[]
}

/** With the status before it where the planner chooses the index: if that equalled something, others had the same order. */
function isAt({ dialect }: SqlContext, { status }: Walk, { operator, place }: Bound): Sql {
  const isFirst = status !== undefined && !dialect.takesIndexes
  const columns = [...(isFirst ? [sql`r.status`] : []), ...PLACE.slice(0, place.length)]
  const values = [...(isFirst ? [dialect.unseen(sql.lit(status), 'text')] : []), ...place]
  return sql`(${list(...columns)}) ${operator} (${list(...values)})`
}
