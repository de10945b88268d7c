import type { PurgeParams, RunStatus } from '@coji/durably-core'
import { ENDED_STATUSES } from '@coji/durably-core'
import { sql } from 'kysely'
import type { Rows } from './drivers/hooks'
import { isOfJobs } from './run-search'
import { createWriteLocked } from './row-locks'
import { runColumns } from './rows'
import { and, compileQuery, runsBy, type Sql, type SqlContext, type Statement, statement } from './statement'
import type { StatementTarget } from './statement-target'
import { awaitersOf } from './woken'

type Parameter<TName extends string> = (name: TName) => Sql

/** Deletes runs with all that belongs to them; the run last, because the guard looks at it. */
export function removeStatements<TName extends string>(
  context: SqlContext,
  guard: (p: Parameter<TName>) => Sql,
): readonly Statement<TName>[] {
  const { tables } = context
  const guarded = (p: Parameter<TName>) => sql`(select r.id from ${tables.runs} as r where ${guard(p)})`
  const related = [tables.steps, tables.logs, tables.run_events, tables.signals]
  return [
    statement<TName>(
      context,
      (p) => sql`delete from ${tables.run_labels} where run_id in ${guarded(p)} returning name, value`,
    ),
    ...related.map((table) =>
      statement<TName>(context, (p) => sql`delete from ${table} where run_id in ${guarded(p)}`),
    ),
    statement<TName>(
      context,
      (p) => sql`delete from ${tables.runs} as r where ${guard(p)} returning ${runColumns(context)}`,
    ),
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
  const seenId = dialect.field(sql`seen.value`, 0, 'text')
  const seenVersion = dialect.field(sql`seen.value`, 1, 'integer')
  const remove = removeStatements<'runs'>(
    context,
    (p) => sql`r.id in (select ${seenId} from ${dialect.rowsOf(p('runs'))} as seen)
      and ${fences['remove.status']()} and ${fences['purge.unneeded'](awaiterOf(context))} and exists (select 1 from ${dialect.rowsOf(p('runs'))} as seen
        where ${seenId} = r.id and ${fences['purge.unchanged'](seenVersion)})`,
  )

  return async function purge(target, params) {
    const statuses = params.statuses.filter((status) => (ENDED_STATUSES as readonly RunStatus[]).includes(status))
    if (statuses.length === 0 || params.limit <= 0) return 0
    const found = await findUnneeded(target, params, statuses)
    if (found.length === 0) return 0
    const runs = JSON.stringify(found.map((row) => [row['id'], row['version']]))
    const runIds = found.map((row) => String(row['id']))
    const results = await writeLocked(
      target,
      { runIds },
      remove.map((one) => one.bind({ runs })),
    )
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
    const newest = sql`r.id not in (select r.id from ${ended} where ${and(...scope)}
      order by r.finished_at desc, r.id desc limit ${keepNewest ?? 0})`
    return sql`with page as materialized (
        select r.* from ${ended} where ${and(...scope, ...age, ...after, newest)} order by r.finished_at, r.id limit ${limit})
      select r.id, r.version, ${dialect.read(sql`r.finished_at`, 'instant')} as finished_at,
        ${fences['purge.unneeded'](awaiterOf(context))} as is_unneeded
      from page as r order by r.finished_at, r.id`
  }
}
