import {
  type CountQuery,
  type NextDue,
  RUN_STATUSES,
  type RunQuery,
  type RunRecord,
  type Scope,
  type StatusCounts,
  type StepRecord,
} from '@coji/durably-core/storage'
import { sql } from 'kysely'
import { runColumns, runsBy, type Sql, type SqlContext, statement, toRun, toStep } from '../statement'
import type { Reader } from './reader'
import { isWaiting, WAITS } from './run-conditions'
import { countRuns } from './run-counts'
import { readRunRows } from './run-pages'

export type Reads = ReturnType<typeof createReads>

export function createReads(context: SqlContext) {
  const { tables, dialect } = context
  const byId = statement<'runId' | 'tenant'>(
    context,
    (p) => sql`select ${runColumns(context)} from ${tables.runs} as r where r.id = ${p('runId')} and ${inTenant(p)}`,
  )
  const steps = statement<'runId' | 'tenant'>(
    context,
    (
      p,
    ) => sql`select ${dialect.columns('steps', 's')}, case when s.due_at <= ${dialect.now} then 1 else 0 end as is_due from ${tables.steps} as s
      where s.run_id = ${p('runId')} and exists (
        select 1 from ${tables.runs} as r where r.id = ${p('runId')} and ${inTenant(p)})
      order by s."index", ${dialect.writeOrder('s')}`,
  )
  const due = dueStatement(context)

  return {
    async getRun(reader: Reader, runId: string, scope: Scope = {}): Promise<RunRecord | null> {
      const [row] = await reader.read(byId.bind({ runId, tenant: scope.tenant ?? null }))
      return row === undefined ? null : toRun(row)
    },
    async getSteps(reader: Reader, runId: string, scope: Scope = {}): Promise<readonly StepRecord[]> {
      return (await reader.read(steps.bind({ runId, tenant: scope.tenant ?? null }))).map(toStep)
    },
    async getRuns(reader: Reader, query: RunQuery): Promise<readonly RunRecord[]> {
      return (await readRunRows(context, reader, query)).map(toRun)
    },
    async counts(reader: Reader, query: CountQuery): Promise<StatusCounts> {
      const found = await countRuns(context, reader, query)
      const countOf = (name: string) => Math.min(found.get(name) ?? 0, query.upTo ?? Number.POSITIVE_INFINITY)
      const counts = RUN_STATUSES.map((status) => [status, countOf(status)])
      const [waitsForRetry = 0, parked = 0] = WAITS.map(countOf)
      return { ...Object.fromEntries(counts), waitsForRetry, parked } as StatusCounts
    },
    async nextDue(reader: Reader, jobs: readonly string[]): Promise<NextDue> {
      const [row = {}] = await reader.read(due.bind({ jobs: JSON.stringify(jobs) }))
      return {
        runInMs: msUntil(row['run_at'], row['now']),
        leaseInMs: msUntil(row['lease_until'], row['now']),
        unknownJobs: JSON.parse(String(row['unknown_jobs'] ?? '[]')) as string[],
      }
    },
  }
}

export function inTenant(p: (name: 'tenant') => Sql): Sql {
  return sql`(${p('tenant')} is null or r.tenant = ${p('tenant')})`
}

/**
 * The next run of each job comes from the index on (job, due); the names are walked through the same index, so that
 * neither the number of waiting runs nor that of ended ones matters.
 */
function dueStatement(context: SqlContext) {
  const { dialect } = context
  const waiting = isWaiting(context)
  const pending = sql`${waiting} and r.available_at is not null`
  // What is to start at once is due, whatever the clock says.
  const dueAt = dialect.hasClockOfCaller
    ? sql`case when r.available_at = r.created_at then min(r.available_at, ${dialect.now}) else r.available_at end`
    : sql`r.available_at`
  // One that was renewed in the future is watched for as long as it was given: the clock has been set back since.
  const leaseUntil = dialect.hasClockOfCaller
    ? sql`case when r.heartbeat_at > ${dialect.now} then ${dialect.nowPlus(lengthOfLease)} else r.lease_until end`
    : sql`r.lease_until`
  return statement<'jobs'>(context, (p) => {
    const known = sql`(select value from ${dialect.listOf(p('jobs'))})`
    const nextName = (after: Sql) =>
      sql`(select min(r.job_name) from ${runsBy(context, 'due')} where ${waiting} ${after})`
    return sql`with recursive names (name) as (
        select ${nextName(sql``)} union all
        select ${nextName(sql`and r.job_name > names.name`)} from names where names.name is not null
      ), due as (
        select names.name, (select ${dueAt} from ${runsBy(context, 'due')}
          where ${pending} and r.job_name = names.name order by r.available_at limit 1) as run_at
        from names where names.name is not null
      )
      select ${dialect.read(dialect.now, 'instant')} as now,
        ${dialect.read(sql`(select min(due.run_at) from due where due.name in ${known})`, 'instant')} as run_at,
        (select ${dialect.arrayOf(sql`due.name`)} from due
          where due.run_at <= ${dialect.now} and due.name not in ${known}) as unknown_jobs,
        ${dialect.read(sql`(select min(${leaseUntil}) from ${runsBy(context, 'running')} where r.status = 'running')`, 'instant')} as lease_until`
  })
}

/** In milliseconds, on SQLite. */
const lengthOfLease = sql`round((julianday(r.lease_until) - julianday(r.heartbeat_at)) * 86400000)`

/** Both instants come from the clock of the database. */
export function msUntil(instant: unknown, now: unknown): number | null {
  if (typeof instant !== 'string' || typeof now !== 'string') return null
  return Math.max(Date.parse(instant) - Date.parse(now), 0)
}
