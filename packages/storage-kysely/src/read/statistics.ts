import type { CountedUntil, HourQuery, HourRow, RunEnd, StatisticsStorage } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import { runsBy, type Row, type Sql, type SqlContext, statement } from '../statement'
import type { Reader } from './reader'

/** A row of all is told from one of a tenant or a job with an empty name. */
const ALL = '*'

export function scopeOf(name: string | null): string {
  return name === null ? ALL : `=${name}`
}

function nameOf(scope: unknown): string | null {
  return scope === ALL ? null : String(scope).slice(1)
}

/** What is counted, and what is yet to be. */
export function createStatisticsReads(context: SqlContext) {
  const { tables, dialect } = context
  const place = statement<never>(
    context,
    () => sql`select ${dialect.columns('statistics_place')} from ${tables.statistics_place} where id = 1`,
  )
  const first = endsStatement(context, () => sql`r.finished_at is not null`)
  const next = endsStatement<'finishedAt' | 'runId'>(
    context,
    (p) => sql`(r.finished_at, r.id) > (${p('finishedAt')}, ${p('runId')})`,
  )
  const hours = statement<'tenantScope' | 'jobScope' | 'hour' | 'beforeHour'>(
    context,
    (p) => sql`select ${dialect.columns('statistics')} from ${tables.statistics}
      where tenant_scope = ${p('tenantScope')} and job_scope = ${p('jobScope')}
        and hour >= ${p('hour')} and hour < ${p('beforeHour')} order by hour`,
  )
  async function countedUntil(reader: Reader): Promise<CountedUntil | null> {
    const [row] = await reader.read(place.bind({}))
    return row === undefined ? null : { finishedAt: String(row['finished_at']), runId: String(row['run_id']) }
  }
  return {
    async ends(reader: Reader, { limit, lagMs }: Parameters<StatisticsStorage['ends']>[0]) {
      const from = await countedUntil(reader)
      const common = { limit, delayMs: -lagMs }
      const rows = await reader.read(from === null ? first.bind(common) : next.bind({ ...common, ...from }))
      return { from, ends: rows.map(toEnd) }
    },
    async hours(reader: Reader, { tenant, jobName, from, before }: HourQuery) {
      const [until, rows] = await Promise.all([
        countedUntil(reader),
        reader.read(
          hours.bind({ tenantScope: scopeOf(tenant), jobScope: scopeOf(jobName), hour: from, beforeHour: before }),
        ),
      ])
      return { countedUntil: until?.finishedAt ?? null, hours: rows.map(toHour) }
    },
  }
}

function endsStatement<TName extends 'finishedAt' | 'runId' = never>(
  context: SqlContext,
  isNext: (p: (name: TName) => Sql) => Sql,
) {
  const { dialect } = context
  const at = (column: string) => sql`${dialect.read(sql.ref(`r.${column}`), 'instant')} as ${sql.ref(column)}`
  return statement<TName | 'limit' | 'delayMs'>(
    context,
    (p) => sql`select r.id, r.tenant, r.job_name, r.status, r.attempt_base, ${at('available_at')}, ${at('started_at')},
        ${at('finished_at')}
      from ${runsBy(context, 'finished')}
      where ${isNext(p as (name: TName) => Sql)} and r.finished_at is not null
        and r.finished_at <= ${dialect.nowPlus(p('delayMs'))}
      order by r.finished_at, r.id limit ${p('limit')}`,
  )
}

function toEnd(row: Row): RunEnd {
  const instant = (column: string) => (row[column] === null ? null : String(row[column]))
  return {
    runId: String(row['id']),
    tenant: String(row['tenant']),
    jobName: String(row['job_name']),
    status: row['status'] as RunEnd['status'],
    attemptBase: Number(row['attempt_base']),
    availableAt: instant('available_at'),
    startedAt: instant('started_at'),
    finishedAt: String(row['finished_at']),
  }
}

export function toHour(row: Row): HourRow {
  return {
    hour: String(row['hour']),
    tenant: nameOf(row['tenant_scope']),
    jobName: nameOf(row['job_scope']),
    started: Number(row['started']),
    completed: Number(row['completed']),
    failed: Number(row['failed']),
    timedOut: Number(row['timed_out']),
    cancelled: Number(row['cancelled']),
    durations: JSON.parse(String(row['durations'])),
    waits: JSON.parse(String(row['waits'])),
  }
}
