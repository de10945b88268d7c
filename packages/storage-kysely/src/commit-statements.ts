import { isEnded, type Outcome } from '@coji/durably-core'
import { sql } from 'kysely'
import { holds } from './fences'
import { newRunStatements } from './new-run'
import { OUTCOMES, type OutcomeName } from './outcomes'
import { eventStatement, wakeParentStatement } from './run-events'
import { and, list, type Sql, type SqlContext, type Statement, statement } from './statement'

/** What every guarded statement of a commit shows. */
export type LeaseName = 'runId' | 'epoch' | 'token' | 'leaderEpoch' | 'commitNo'

type StepName =
  | 'stepId'
  | 'name'
  | 'index'
  | 'kind'
  | 'status'
  | 'attempt'
  | 'output'
  | 'error'
  | 'errorDetail'
  | 'checkpoint'
  | 'waitName'
  | 'dueAt'
  | 'dueInMs'
  | 'minusDurationMs'

type ChildName = 'childId' | 'childTenant' | 'childJob' | 'childKey'
type LogName = 'logId' | 'stepName' | 'level' | 'message' | 'data' | 'timestamp'
type RunName = 'leaseMs' | 'currentStepIndex' | 'progress' | 'hasProgressed' | 'eventCount' | 'cancelledEventCount'

export type CommitStatements = ReturnType<typeof commitStatements>

type Parameter<TName extends string> = (name: TName) => Sql

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
    step: stepStatement(context, guard, (p) => p('output')),
    childStep: stepStatement<ChildName>(context, guard, (p) => childOutput(context, p)),
    child: newRunStatements<LeaseName>(context, { guard }),
    log: statement<LogName | LeaseName>(
      context,
      (p) => sql`insert into ${tables.logs} (id, run_id, step_name, level, message, data, timestamp)
        select ${list(p('logId'), sql`r.id`, p('stepName'), p('level'), p('message'), p('data'), p('timestamp'))}
        from ${tables.runs} as r where ${guard(p)} on conflict (id) do nothing`,
    ),
    event: eventStatement<LeaseName>(context, guard),
    eventUnlessCancelled: eventStatement<LeaseName>(context, unflagged),
    eventIfCancelled: eventStatement<LeaseName>(context, flagged),
    consume: statement<'positions' | LeaseName>(
      context,
      (p) => sql`update ${tables.signals} set consumed_at = ${dialect.now}
        where run_id = ${p('runId')} and consumed_at is null
          and position in (select value from ${dialect.listOf(p('positions'))})
          and exists (select 1 from ${tables.runs} as r where ${guard(p)})`,
    ),
    wakeParent: wakeParentStatement<LeaseName>(context, guard),
    wakeParentIfCancelled: wakeParentStatement<LeaseName>(context, flagged),
    keep: keepStatement(context, guard),
    leave: Object.fromEntries(kinds.map((kind) => [kind, leaveStatement(context, guard, kind)])) as Record<
      Outcome['kind'],
      Statement<RunName | OutcomeName | LeaseName>
    >,
  }
}

function stepStatement<TExtra extends string = never>(
  context: SqlContext,
  guard: (p: Parameter<LeaseName>) => Sql,
  output: (p: Parameter<StepName | TExtra>) => Sql,
) {
  const { tables, dialect } = context
  return statement<StepName | LeaseName | TExtra>(context, (p) => {
    const columns: Record<string, Sql> = {
      id: p('stepId'),
      run_id: sql`r.id`,
      name: p('name'),
      index: p('index'),
      kind: p('kind'),
      status: p('status'),
      attempt: p('attempt'),
      output: output(p),
      error: p('error'),
      error_detail: p('errorDetail'),
      checkpoint: p('checkpoint'),
      wait_name: p('waitName'),
      due_at: sql`coalesce(${p('dueAt')}, case when ${p('dueInMs')} is not null then ${dialect.nowPlus(p('dueInMs'))} end)`,
      lease_epoch: sql`r.lease_epoch`,
      claim_token: sql`r.claim_token`,
      started_at: dialect.nowPlus(p('minusDurationMs')),
      completed_at: sql`case when ${p('status')} in ('completed', 'failed') then ${dialect.now} end`,
    }
    const names = Object.keys(columns)
    const overwrite = names.filter((name) => name !== 'id' && name !== 'run_id' && name !== 'due_at')
    return sql`insert into ${tables.steps} as s (${list(...names.map((name) => sql.ref(name)))})
      select ${list(...Object.values(columns))} from ${tables.runs} as r where ${guard(p)}
      on conflict (id) do update set due_at = coalesce(s.due_at, excluded.due_at),
        ${list(...overwrite.map((name) => sql`${sql.ref(name)} = ${sql.ref(`excluded.${name}`)}`))}
      returning output`
  })
}

/** JSON of the id of the run that was created, or of the one that has its key. */
function childOutput({ tables }: SqlContext, p: Parameter<ChildName>): Sql {
  return sql`(select '"' || c.id || '"' from ${tables.runs} as c where c.id = coalesce(
    (select a.id from ${tables.runs} as a where a.id = ${p('childId')}),
    (select b.id from ${tables.runs} as b where b.tenant = ${p('childTenant')} and b.job_name = ${p('childJob')}
      and b.idempotency_key = ${p('childKey')})))`
}

function shared({ dialect }: SqlContext, p: Parameter<RunName | LeaseName>): Record<string, Sql> {
  return {
    version: sql`r.version + 1`,
    updated_at: dialect.now,
    commit_no: p('commitNo'),
    crash_count: sql`case when ${p('hasProgressed')} = 1 then 0 else r.crash_count end`,
    current_step_index: sql`coalesce(${p('currentStepIndex')}, r.current_step_index)`,
    progress: sql`coalesce(${p('progress')}, r.progress)`,
    heartbeat_at: dialect.now,
  }
}

const ANSWER = sql`status, last_event_sequence, wakes, cancel_requested_at`

function keepStatement(context: SqlContext, guard: (p: Parameter<LeaseName>) => Sql) {
  return statement<RunName | LeaseName>(context, (p) => {
    const sets = {
      ...shared(context, p),
      lease_until: context.dialect.nowPlus(p('leaseMs')),
      last_event_sequence: sql`r.last_event_sequence + ${p('eventCount')}`,
    }
    return sql`update ${context.tables.runs} as r set ${assignments(sets)} where ${guard(p)} returning ${ANSWER}`
  })
}

function leaveStatement(context: SqlContext, guard: (p: Parameter<LeaseName>) => Sql, kind: Outcome['kind']) {
  const { status, sets } = OUTCOMES[kind]
  return statement<RunName | OutcomeName | LeaseName>(context, (p) => {
    const own = Object.entries(sets(context, p)).map(
      ([column, value]) => [column, unlessFlagged(value, sql.ref(`r.${column}`))] as const,
    )
    const changes = {
      ...shared(context, p),
      ...Object.fromEntries(own),
      status: unlessFlagged(sql.lit(status), sql`'cancelled'`),
      ...whatEndsLose(context, status),
      owner_id: sql`null`,
      lease_until: sql`null`,
      last_event_sequence: sql`r.last_event_sequence + ${unlessFlagged(p('eventCount'), p('cancelledEventCount'))}`,
    }
    return sql`update ${context.tables.runs} as r set ${assignments(changes)} where ${guard(p)} returning ${ANSWER}`
  })
}

/** An ended run holds no slot; a waiting one keeps it only when asked to. */
function whatEndsLose({ dialect }: SqlContext, status: OutcomeStatus): Record<string, Sql> {
  if (isEnded(status)) return { finished_at: dialect.now, concurrency_slot: sql`null`, waiting_for: sql`null` }
  const keptSlot = sql`case when r.hold_key_while_waiting = 1 then r.concurrency_slot end`
  return {
    finished_at: unlessFlagged(sql`null`, dialect.now),
    concurrency_slot: unlessFlagged(keptSlot, sql`null`),
  }
}

type OutcomeStatus = (typeof OUTCOMES)[Outcome['kind']]['status']

function unlessFlagged(value: Sql, otherwise: Sql): Sql {
  return sql`case when r.cancel_requested_at is null then ${value} else ${otherwise} end`
}

function assignments(changes: Readonly<Record<string, Sql>>): Sql {
  return list(...Object.entries(changes).map(([column, value]) => sql`${sql.ref(column)} = ${value}`))
}
