import { addCounts, type Fold, type HourRow, hourName } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import { type Reader, scopeOf, toHour } from '../read'
import {
  list,
  type ListedRow,
  namesOf,
  rowsOf,
  type SqlContext,
  statement,
  valueOf,
  type WriteTarget,
} from '../statement'

const KEY = ['tenantScope', 'jobScope', 'hour'] as const
const COUNTS = ['started', 'completed', 'failed', 'timedOut', 'cancelled', 'durations', 'waits'] as const

/** The place moves on in the same write, and only from where it was read: so the rows are as they were read too. */
export function createStatisticsWrites(context: SqlContext) {
  const { tables } = context
  const [find, move, put] = [findStatement(context), moveStatement(context), putStatement(context)]
  const forget = statement<'beforeHour'>(
    context,
    (p) => sql`delete from ${tables.statistics} where hour < ${p('beforeHour')}`,
  )
  return {
    async fold(target: WriteTarget & Reader, { from, to, token, rows }: Fold): Promise<boolean> {
      const found = await target.read(find.bind({ hours: JSON.stringify(rows.map(keyOf)) }))
      const before = new Map(found.map(toHour).map((row) => [hourName(row), row]))
      const sums = rows.map((row) => {
        const there = before.get(hourName(row))
        return there === undefined ? row : addCounts(there, row)
      })
      const [moved = []] = await target.write([
        move.bind({
          ...{ finishedAt: to.finishedAt, runId: to.runId, token },
          ...{ fromFinishedAt: from?.finishedAt ?? null, fromRunId: from?.runId ?? null },
        }),
        put.bind({ hours: JSON.stringify(sums.map(valuesOf)), token }),
      ])
      return moved.length > 0
    },
    async forget(target: WriteTarget, before: string): Promise<void> {
      await target.write([forget.bind({ beforeHour: before })])
    },
  }
}

function keyOf({ tenant, jobName, hour }: HourRow): ListedRow {
  return { tenantScope: scopeOf(tenant), jobScope: scopeOf(jobName), hour }
}

function valuesOf(row: HourRow): ListedRow {
  const { started, completed, failed, timedOut, cancelled, durations, waits } = row
  const counts = { started, completed, failed, timedOut, cancelled }
  return { ...keyOf(row), ...counts, durations: JSON.stringify(durations), waits: JSON.stringify(waits) }
}

function findStatement(context: SqlContext) {
  const { tables, dialect } = context
  return statement<'hours'>(
    context,
    (p) => sql`select ${dialect.columns('statistics', 's')} from ${rowsOf(context, p('hours'), KEY)}
      join ${tables.statistics} as s on s.tenant_scope = t."tenantScope" and s.job_scope = t."jobScope" and s.hour = t.hour`,
  )
}

function moveStatement(context: SqlContext) {
  const { tables } = context
  return statement<'finishedAt' | 'runId' | 'token' | 'fromFinishedAt' | 'fromRunId'>(
    context,
    (p) => sql`insert into ${tables.statistics_place} as s (id, finished_at, run_id, token)
      values (1, ${p('finishedAt')}, ${p('runId')}, ${p('token')})
      on conflict (id) do update
        set finished_at = excluded.finished_at, run_id = excluded.run_id, token = excluded.token
        where s.finished_at = ${p('fromFinishedAt')} and s.run_id = ${p('fromRunId')}
      returning id`,
  )
}

function putStatement(context: SqlContext) {
  const { tables } = context
  const value = valueOf(context, 't')
  const columns = {
    tenant_scope: value('tenantScope'),
    job_scope: value('jobScope'),
    hour: value('hour'),
    started: value('started'),
    completed: value('completed'),
    failed: value('failed'),
    timed_out: value('timedOut'),
    cancelled: value('cancelled'),
    durations: value('durations'),
    waits: value('waits'),
  }
  const changes = Object.keys(columns).slice(KEY.length)
  return statement<'hours' | 'token'>(
    context,
    (p) => sql`insert into ${tables.statistics} (${namesOf(columns)}) select ${list(...Object.values(columns))}
      from ${rowsOf(context, p('hours'), [...KEY, ...COUNTS])}
      where exists (select 1 from ${tables.statistics_place} as s where s.id = 1 and s.token = ${p('token')})
      on conflict (tenant_scope, job_scope, hour) do update
        set ${list(...changes.map((name) => sql`${sql.ref(name)} = ${sql.ref(`excluded.${name}`)}`))}`,
  )
}
