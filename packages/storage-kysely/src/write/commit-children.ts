import { createsRuns, type NewRun, type RunCommit, type StepWrite } from '@coji/durably-core/storage'
import { type CompiledQuery, sql } from 'kysely'
import type { LeaseName } from './commit-columns'
import { byKey } from './enqueue'
import { createdRuns, type GroupName, groupValues } from './group-enqueue'
import { bindNewRun, newRunStatements } from './new-run'
import { createLock } from './row-locks'
import { type Sql, type SqlContext, type SqlValue, statement } from '../statement'

export type ChildName = 'childId' | 'childTenant' | 'childJob' | 'childKey'
export type LeaseValues = Readonly<Record<LeaseName, SqlValue>>

type Parameter<TName extends string> = (name: TName) => Sql
type Guard = (p: Parameter<LeaseName>) => Sql
type ChildStatements = ReturnType<typeof childStatements>

/** What creates the runs of a commit, on behalf of a holder that passes the guard. */
export function childStatements(context: SqlContext, guard: Guard) {
  const { tables, dialect } = context
  const many = statement<GroupName | LeaseName>(context, (p) => {
    const isHeld = sql`exists (select 1 from ${tables.runs} as r where ${guard(p)})`
    return sql`with ${createdRuns(context, p, { condition: isHeld })} select id from created`
  })
  return {
    one: newRunStatements<LeaseName>(context, { guard }),
    /** For a database that takes a list of runs as one value. */
    many: dialect.hasWritingQueries ? many : null,
    awaitAlso: awaitStatement(context, guard),
    lock: createLock(context),
  }
}

/**
 * Notes on the run that has the key of a child that somebody else waits for it too. One that has ended wakes nobody any
 * more: it keeps those for whom it must stay.
 */
function awaitStatement(context: SqlContext, guard: Guard) {
  const { tables, dialect } = context
  return statement<ChildName | 'parentId' | LeaseName>(context, (p) => {
    const known = sql`select value from ${dialect.listOf(sql`c.also_awaited_by`)}`
    const isAlive = sql`exists (select 1 from ${tables.runs} as p where p.id = a.value and p.finished_at is null)`
    const awaiters = sql`select ${dialect.toJson(dialect.arrayOf(sql`a.value`))}
      from (${known} union all select ${p('parentId')}) as a
      where c.finished_at is null or a.value = ${p('parentId')} or ${isAlive}`
    return sql`update ${tables.runs} as c set version = c.version + 1, updated_at = ${dialect.now}, also_awaited_by = (${awaiters})
      where c.tenant = ${p('childTenant')} and c.job_name = ${p('childJob')} and c.idempotency_key = ${p('childKey')}
        and c.id <> ${p('childId')} and not (${dialect.isSame(sql`c.parent_run_id`, p('parentId'))})
        and not exists (select 1 from (${known}) as a where a.value = ${p('parentId')})
        and exists (select 1 from ${tables.runs} as r where ${guard(p)})`
  })
}

/** The children of the steps, the others, and a note on each run that has the key of a child. */
export function bindChildren(statements: ChildStatements, commit: RunCommit, lease: LeaseValues): CompiledQuery[] {
  if (!createsRuns(commit)) return []
  const { one, many, awaitAlso, lock } = statements
  const { children } = commit
  const ofSteps = childSteps(commit).flatMap(({ child }) => (child === null ? [] : [child]))
  const keyed = keyedChildren(commit)
  const each = (runs: readonly NewRun[]) =>
    runs.flatMap((run, index) => {
      return bindNewRun(one, run, { extra: lease, firstId: index === 0 ? null : (runs[0]?.id ?? null) })
    })
  return [
    ...each(ofSteps.sort(byKey)),
    ...(many === null || children.length === 0 ? each(children) : [many.bind({ ...lease, ...groupValues(children) })]),
    // Somebody may have created them since the commit began.
    ...(keyed.length === 0 ? [] : lock({ runIds: [], keys: keyed })),
    ...keyed.map(({ id, parentRunId, tenant, jobName, idempotencyKey }) => {
      const child = { childId: id, childTenant: tenant, childJob: jobName, childKey: idempotencyKey }
      return awaitAlso.bind({ ...lease, ...child, parentId: parentRunId })
    }),
  ]
}

export function childSteps(commit: RunCommit): readonly StepWrite[] {
  return commit.steps.filter((step) => step.child !== null)
}

/** Children whose key another run may have. */
export function keyedChildren(commit: RunCommit): readonly NewRun[] {
  return commit.steps.flatMap(({ child }) =>
    child === null || child.idempotencyKey === null || child.parentRunId === null ? [] : [child],
  )
}
