import type { PurgeParams, RunStatus } from '@coji/durably-core/storage'
import { ENDED_STATUSES } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import type { Rows } from '../dialect'
import { isOfJobs } from '../read'
import { straysOf } from './archiving'
import { insertNote, type NoteName, noteValues } from './audit'
import { createWriteLocked } from './row-locks'
import {
  and,
  awaitersOf,
  compileQuery,
  type ParameterName,
  runColumns,
  runsBy,
  type Sql,
  type SqlContext,
  type Statement,
  statement,
  type StatementTarget,
} from '../statement'

type Parameter<TName extends ParameterName> = (name: TName) => Sql

/** Deletes runs with all that belongs to them; the run last, because the guard looks at it. */
export function removeStatements<TName extends ParameterName>(
  context: SqlContext,
  guard: (p: Parameter<TName>) => Sql,
  /** What is told of each run. */
  told: Sql = runColumns(context),
): readonly Statement<TName>[] {
  const { tables } = context
  // Of an empty table nothing has to be looked for: a queue of plain tasks has four of them.
  const isOf = (table: Sql, p: Parameter<TName>) => sql`exists (select 1 from ${table})
    and run_id in (select r.id from ${tables.runs} as r where ${guard(p)})`
  const related = [tables.steps, tables.logs, tables.run_events, tables.signals, tables.debounced_runs]
  return [
    statement<TName>(
      context,
      (p) => sql`delete from ${tables.run_labels} where ${isOf(tables.run_labels, p)} returning name, value`,
    ),
    statement<TName>(context, (p) => straysOf(context, guard(p))),
    ...related.map((table) => statement<TName>(context, (p) => sql`delete from ${table} where ${isOf(table, p)}`)),
    statement<TName>(context, (p) => sql`delete from ${tables.runs} as r where ${guard(p)} returning ${told}`),
  ]
}

/** Those who wait for the run `r`: its parent, and who else has asked for it by its key. */
function awaiterOf(context: SqlContext): Sql {
  return sql`select 1 from ${context.tables.runs} as parent where ${context.dialect.isAmong(sql`parent.id`, awaitersOf(context))}`
}

export type Purge = (target: StatementTarget, params: PurgeParams) => Promise<number>

type Row = Rows[number]

/** Looks for the oldest first, then removes those that are still as they were seen. */
export function createPurge(context: SqlContext): Purge {
  const { dialect, fences } = context
  const writeLocked = createWriteLocked(context)
  const seen = (p: Parameter<'runs'>) => dialect.rowsOf(p('runs'))
  const seenId = dialect.field(sql`seen.value`, 0, 'text')
  const seenVersion = dialect.field(sql`seen.value`, 1, 'integer')
  // Both lists are gone through once, not once for each run.
  const guard = (p: Parameter<'runs'>): Sql =>
    sql`${dialect.isAmong(sql`r.id`, sql`select ${seenId} from ${seen(p)} as seen`)}
      and ${fences['remove.status']()} and ${fences['purge.unneeded'](awaiterOf(context))}
      and ${fences['purge.unchanged'](sql`select ${seenId} || '/' || ${seenVersion} from ${seen(p)} as seen`, dialect)}`
  const remove = removeStatements<'runs'>(context, guard, sql`id`)
  const noted = statement<'runs' | 'tenant' | NoteName>(context, (p) => {
    const list = dialect.nested(dialect.toJson(dialect.arrayOf(sql`r.id`)))
    const of = {
      ...{ tenant: p('tenant'), target_kind: sql`'runs'`, target: sql`''` },
      before: dialect.record({ runs: list }),
    }
    const from = sql`from ${context.tables.runs} as r where ${guard(p)} having count(*) > 0`
    return insertNote(context, p, { of, from })
  })

  return async function purge(target, params) {
    const statuses = params.statuses.filter((status) => (ENDED_STATUSES as readonly RunStatus[]).includes(status))
    if (statuses.length === 0 || params.limit <= 0) return 0
    const found = await findUnneeded(target, params, statuses)
    if (found.length === 0) return 0
    const runs = JSON.stringify(found.map((row) => [row['id'], row['version']]))
    const runIds = found.map((row) => String(row['id']))
    const list = remove.map((one) => one.bind({ runs }))
    const note =
      params.audit === undefined ? [] : [noted.bind({ ...noteValues(params.audit), runs, tenant: params.tenant ?? '' })]
    const results = await writeLocked(target, { runIds }, [...note, ...list])
    return results.at(-1)?.length ?? 0
  }

  /** Passes over those that somebody waits for, however many they are. */
  async function findUnneeded(target: StatementTarget, params: PurgeParams, statuses: readonly RunStatus[]) {
    for (let last: Row | undefined; ; ) {
      const page = await target.read(compileQuery(context, oldest(params, statuses, last)))
      const found = page.filter((row) => Boolean(row['is_unneeded']))
      if (found.length > 0 || page.length < params.limit) return found
      last = page.at(-1)
    }
  }

  /**
   * By the end of the runs: any other index would have all of them sorted for each batch. Who waits for them is looked up
   * afterwards, since what that costs is nothing that Postgres could know.
   */
  function oldest(params: PurgeParams, statuses: readonly RunStatus[], last: Row | undefined): Sql {
    const { tenant, jobNames, olderThanMs, before, keepNewest, limit } = params
    const scope = [
      sql`r.finished_at is not null`,
      sql`r.status in (${sql.join(statuses)})`,
      ...(tenant === undefined ? [] : [sql`r.tenant = ${tenant}`]),
      ...(jobNames === undefined ? [] : [isOfJobs(jobNames, context)]),
    ]
    const age = [
      ...(olderThanMs === undefined ? [] : [sql`r.finished_at < ${dialect.nowPlus(sql`${-olderThanMs}`)}`]),
      ...(before === undefined ? [] : [sql`r.finished_at < ${before}`]),
    ]
    const after = last === undefined ? [] : [sql`(r.finished_at, r.id) > (${last['finished_at']}, ${last['id']})`]
    const ended = runsBy(context, 'finished')
    const newest = sql`(r.finished_at, r.id) <= (select r.finished_at, r.id from ${ended} where ${and(...scope)}
      order by r.finished_at desc, r.id desc limit 1 offset ${keepNewest ?? 0})`
    const beyond = keepNewest === undefined || keepNewest === 0 ? [] : [newest]
    return sql`with page as materialized (
        select r.id, r.version, r.finished_at, r.parent_run_id, r.also_awaited_by from ${ended}
        where ${and(...scope, ...age, ...after, ...beyond)} order by r.finished_at, r.id limit ${limit})
      select r.id, r.version, ${dialect.read(sql`r.finished_at`, 'instant')} as finished_at,
        ${fences['purge.unneeded'](awaiterOf(context))} as is_unneeded
      from page as r order by r.finished_at, r.id`
  }
}
