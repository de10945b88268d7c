import type { RunCommand } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import { insertNote, type Noted, type NoteName, runView } from './audit'
import { removeStatements } from './remove'
import { and, type ParameterName, runColumns, type Sql, type SqlContext, type Statement, statement } from '../statement'
import { type EventStatement, eventStatement, wakeParentsStatement } from './run-events'

export type TargetName = 'runId' | 'tenant'
export type ChangeName = 'eventCount' | 'waitingFor' | 'error' | 'errorDetail'
type Parameter<TName extends ParameterName> = (name: TName) => Sql

/** A guarded change of runs, and the events that go with it. */
export interface Change<TName extends ParameterName = TargetName> {
  readonly event: EventStatement<TName>
  readonly update: Statement<TName | ChangeName>
}

/**
 * What ends runs from outside: those that wait at once, those that run as soon as their workers hear of it. `asFilter` keeps a
 * condition from being a reason to look runs up by it.
 */
export function cancelStatements<TName extends ParameterName>(
  context: SqlContext,
  target: (p: Parameter<TName>) => Sql,
  asFilter = (condition: Sql): Sql => condition,
) {
  const { fences } = context
  const isRunning = (p: Parameter<TName>) => and(target(p), asFilter(fences['requestCancel.status']()))
  const isWaiting = (p: Parameter<TName>) => and(target(p), asFilter(fences['cancel.status']()))
  return {
    requestCancel: change(context, isRunning, () => flagged(context)),
    cancel: change(context, isWaiting, () => sql`${flagged(context)}, ${ended(context, 'cancelled')}, output = null`),
    wakeParentsOfCancelled: wakeParentsStatement<TName>(context, (p) => and(isWaiting(p), IS_AWAITED)),
  }
}

/** Said by the row itself, before anything is looked up elsewhere; of both together no index knows. */
const IS_AWAITED = sql`(r.parent_run_id is not null or r.also_awaited_by is not null)`

export function commandStatements(context: SqlContext) {
  const { tables, dialect, fences } = context
  const target = (p: Parameter<TargetName>): Sql =>
    and(sql`r.id = ${p('runId')}`, fences['command.tenant'](p('tenant')))
  const guardOf =
    (...conditions: readonly Sql[]) =>
    (p: Parameter<TargetName>): Sql =>
      and(target(p), ...conditions)
  const guards = {
    requestCancel: guardOf(fences['requestCancel.status']()),
    cancel: guardOf(fences['cancel.status']()),
    retry: guardOf(fences['retry.status']()),
    park: guardOf(fences['park.status']()),
    unpark: guardOf(fences['unpark.parked'](dialect)),
    failParked: guardOf(fences['failParked.parked'](dialect)),
    remove: guardOf(fences['remove.status']()),
  }
  return {
    ...cancelStatements(context, target),
    retry: change(context, guards.retry, () => RETRIED),
    dropWaits: statement<TargetName>(
      context,
      (p) => sql`delete from ${tables.steps} where run_id = ${p('runId')} and status = 'waiting'
        and exists (select 1 from ${tables.runs} as r where ${guards.retry(p)})`,
    ),
    park: change(context, guards.park, (p) => sql`available_at = null, waiting_for = ${p('waitingFor')}`),
    unpark: change(context, guards.unpark, () => sql`available_at = r.created_at, waiting_for = null`),
    failParked: change(
      context,
      guards.failParked,
      (p) => sql`${ended(context, 'failed')}, error = ${p('error')}, error_detail = ${p('errorDetail')}`,
    ),
    wakeParentsOfFailed: wakeParentsStatement<TargetName>(context, guards.failParked),
    remove: removeStatements<TargetName>(context, guards.remove),
    noted: notedOf(context, { ...guards, cancel: (p) => sql`(${guards.requestCancel(p)} or ${guards.cancel(p)})` }),
  }
}

type Guards = Readonly<Record<RunCommand['kind'], (p: Parameter<TargetName>) => Sql>>

/** What leaves a note of each kind of command, where its guard lets it through. */
function notedOf(context: SqlContext, guards: Guards): Readonly<Record<RunCommand['kind'], Noted<TargetName>>> {
  const { tables } = context
  const after = statement<TargetName | NoteName>(
    context,
    (p) => sql`update ${tables.audit} set after = (select ${runView(context)} from ${tables.runs} as r
      where r.id = ${p('runId')}) where id = ${p('noteId')}`,
  )
  const notedOf = (guard: Guards[RunCommand['kind']]): Noted<TargetName> => ({
    before: statement<TargetName | NoteName>(context, (p) => {
      const of = { tenant: sql`r.tenant`, target_kind: sql`'run'`, target: sql`r.id`, before: runView(context) }
      return insertNote(context, p, { of, from: sql`from ${tables.runs} as r where ${guard(p)}` })
    }),
    after,
  })
  return {
    cancel: notedOf(guards.cancel),
    retry: notedOf(guards.retry),
    park: notedOf(guards.park),
    unpark: notedOf(guards.unpark),
    failParked: notedOf(guards.failParked),
    remove: notedOf(guards.remove),
  }
}

function change<TName extends ParameterName = TargetName>(
  context: SqlContext,
  guard: (p: Parameter<TName>) => Sql,
  sets: (p: Parameter<ChangeName>) => Sql,
): Change<TName> {
  const { tables, dialect } = context
  return {
    event: eventStatement<TName>(context, guard),
    update: statement<TName | ChangeName>(
      context,
      (p) => sql`update ${tables.runs} as r set version = r.version + 1, updated_at = ${dialect.now},
        last_event_sequence = r.last_event_sequence + ${p('eventCount')}, ${sets(p)}
        where ${guard(p)} returning ${runColumns(context)}`,
    ),
  }
}

function flagged({ dialect }: SqlContext): Sql {
  return sql`cancel_requested_at = coalesce(r.cancel_requested_at, ${dialect.now})`
}

function ended({ dialect }: SqlContext, status: 'cancelled' | 'failed'): Sql {
  return sql`status = ${sql.lit(status)}, finished_at = ${dialect.now}, waiting_for = null, concurrency_slot = null,
    owner_id = null, lease_until = null`
}

/** What a retry by hand begins anew; completed steps and unread signals stay. */
const RETRIED = sql`status = 'pending', attempt = r.attempt + 1, attempt_base = r.attempt, crash_count = 0,
  lease_epoch = r.lease_epoch + 1, claim_token = null, owner_id = null, lease_until = null, concurrency_slot = null,
  available_at = r.created_at, waiting_for = null, output = null, error = null, error_detail = null,
  cancel_requested_at = null, deadline_at = null, started_at = null, finished_at = null`
