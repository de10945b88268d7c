import type { Outcome } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import {
  keepChanges,
  type LeaseName,
  outcomeChanges,
  logColumns,
  type LogName,
  overwriteStep,
  type RunName,
  stepColumns,
  type StepName,
} from './commit-columns'
import {
  and,
  assignments,
  holds,
  list,
  namesOf,
  type ParameterName,
  type Sql,
  type SqlContext,
  type Statement,
  statement,
} from '../statement'
import { type ChildName, childStatements } from './commit-children'
import { newRunStatements } from './new-run'
import { type OutcomeName, OUTCOMES } from './outcomes'
import { eventStatement, wakeParentsStatement } from './run-events'

export type CommitStatements = ReturnType<typeof commitStatements>

type Parameter<TName extends ParameterName> = (name: TName) => Sql

/**
 * The statements of a commit. All but the last are guarded inserts, the last is the guarded update of the run, after
 * which no guard holds any more: so the list is the same in one message as in many.
 */
export function commitStatements(context: SqlContext) {
  const { tables, dialect, fences } = context
  const guard = (p: Parameter<LeaseName>): Sql =>
    holds(fences, dialect, {
      runId: p('runId'),
      epoch: p('epoch'),
      token: p('token'),
      leaderEpoch: p('leaderEpoch'),
      commitNo: p('commitNo'),
    })
  const flagged = (p: Parameter<LeaseName>): Sql => and(guard(p), sql`r.cancel_requested_at is not null`)
  const unflagged = (p: Parameter<LeaseName>): Sql => and(guard(p), sql`r.cancel_requested_at is null`)
  const kinds = Object.keys(OUTCOMES) as Outcome['kind'][]
  return {
    children: childStatements(context, guard),
    called: newRunStatements<LeaseName>(context, { guard: unflagged }),
    step: stepStatement(context, { guard, output: (p) => p('output') }),
    childStep: stepStatement<ChildName>(context, { guard, output: (p) => childOutput(context, p), isAsked: true }),
    log: statement<LogName | LeaseName>(context, (p) => {
      const columns = logColumns(p)
      return sql`insert into ${tables.logs} (${namesOf(columns)}) select ${list(...Object.values(columns))}
        from ${tables.runs} as r where ${guard(p)} on conflict (id) do nothing`
    }),
    event: eventStatement<LeaseName>(context, guard),
    eventUnlessCancelled: eventStatement<LeaseName>(context, unflagged),
    eventIfCancelled: eventStatement<LeaseName>(context, flagged),
    consume: statement<'positions' | LeaseName>(
      context,
      (p) => sql`update ${tables.signals} set consumed_at = ${dialect.now}
        where run_id = ${p('runId')} and consumed_at is null
          and position in (select value from ${dialect.listOf(p('positions'), 'integer')})
          and exists (select 1 from ${tables.runs} as r where ${guard(p)})`,
    ),
    wakeParents: wakeParentsStatement<LeaseName>(context, guard),
    wakeParentsIfCancelled: wakeParentsStatement<LeaseName>(context, flagged),
    keep: keepStatement(context, guard),
    outcome: Object.fromEntries(kinds.map((kind) => [kind, outcomeStatement(context, guard, kind)])) as Record<
      Outcome['kind'],
      Statement<RunName | OutcomeName | LeaseName>
    >,
  }
}

interface StepStatementParams<TExtra extends ParameterName> {
  readonly guard: (p: Parameter<LeaseName>) => Sql
  readonly output: (p: Parameter<StepName | TExtra>) => Sql
  /** Somebody has to know what was stored. */
  readonly isAsked?: boolean
}

function stepStatement<TExtra extends ParameterName = never>(
  context: SqlContext,
  { guard, output, isAsked = false }: StepStatementParams<TExtra>,
) {
  const { tables, dialect } = context
  return statement<StepName | LeaseName | TExtra>(context, (p) => {
    const columns = stepColumns(context, p, output(p))
    const returning = isAsked ? sql` returning ${dialect.read(sql.ref('output'), 'json')} as output` : sql``
    return sql`insert into ${tables.steps} as s (${namesOf(columns)})
      select ${list(...Object.values(columns))} from ${tables.runs} as r where ${guard(p)}
      ${overwriteStep(columns)}${returning}`
  })
}

/** JSON of the id of the run that was created, or of the one that has its key. */
function childOutput({ tables, dialect }: SqlContext, p: Parameter<ChildName>): Sql {
  return sql`(select ${dialect.toJson(sql`'"' || c.id || '"'`)} from ${tables.runs} as c where c.id = coalesce(
    (select a.id from ${tables.runs} as a where a.id = ${p('childId')}),
    (select b.id from ${tables.runs} as b where b.tenant = ${p('childTenant')} and b.job_name = ${p('childJob')}
      and b.idempotency_key = ${p('childKey')})))`
}

const ANSWER = sql`status, last_event_sequence, wakes, cancel_requested_at`

function keepStatement(context: SqlContext, guard: (p: Parameter<LeaseName>) => Sql) {
  return statement<RunName | LeaseName>(
    context,
    (p) => sql`update ${context.tables.runs} as r set ${assignments(keepChanges(context, p))}
      where ${guard(p)} returning ${ANSWER}`,
  )
}

function outcomeStatement(context: SqlContext, guard: (p: Parameter<LeaseName>) => Sql, kind: Outcome['kind']) {
  const { tables, dialect } = context
  return statement<RunName | OutcomeName | LeaseName>(context, (p) => {
    const waitsEnd = sql`select s.due_at from ${tables.steps} as s where s.run_id = r.id and s.status = 'waiting'
        and s.name in (select value from ${dialect.listOf(p('awaited'))})`
    return sql`update ${tables.runs} as r set ${assignments(outcomeChanges(context, { kind, value: p, waitsEnd }))}
        where ${guard(p)} returning ${ANSWER}`
  })
}
