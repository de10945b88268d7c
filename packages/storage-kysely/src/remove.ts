import type { PurgeParams, RunStatus } from '@coji/durably-core'
import { ENDED_STATUSES } from '@coji/durably-core'
import { sql } from 'kysely'
import { isOfJobs } from './reads'
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
  return sql`select 1 from ${context.tables.runs} as parent where parent.id in (${awaitersOf(context)})`
}

export type Purge = (target: StatementTarget, params: PurgeParams) => Promise<number>

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
    const found = await target.read(compileQuery(context, oldest(params, statuses)))
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

  function oldest(params: PurgeParams, statuses: readonly RunStatus[]): Sql {
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
    // By the end of the runs: any other index would have all of them sorted for each batch.
    const ended = runsBy(context, 'finished')
    const newest = sql`r.id not in (select r.id from ${ended} where ${and(...scope)}
      order by r.finished_at desc, r.id desc limit ${keepNewest ?? 0})`
    const needed = fences['purge.unneeded'](awaiterOf(context))
    return sql`select r.id, r.version from ${ended} where ${and(...scope, ...age, newest, needed)}
      order by r.finished_at, r.id limit ${limit}`
  }
}
