import {
  isEnded,
  type Outcome,
  type CommitAnswer,
  type RunCommit,
  type RunStatus,
  type StepWrite,
} from '@coji/durably-core/storage'
import { sql } from 'kysely'
import { type OutcomeName, OUTCOMES, outcomeValues } from './outcomes'
import { list, type ParameterName, type Sql, type SqlContext, type SqlValue, toJson } from '../statement'
import type { Rows } from '../dialect'

/** What every guarded statement of a commit shows. */
export type LeaseName = 'runId' | 'epoch' | 'token' | 'leaderEpoch' | 'commitNo'

export type StepName =
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

export type LogName = 'logId' | 'stepName' | 'level' | 'message' | 'data' | 'timestamp'
export type RunName =
  | 'leaseMs'
  | 'currentStepIndex'
  | 'progress'
  | 'hasProgressed'
  | 'eventCount'
  | 'cancelledEventCount'

/** A value by its name, wherever the statement has it from. */
export type Value<TName extends ParameterName> = (name: TName) => Sql

/** The columns of a step row of the run `r`. */
export function stepColumns(
  { dialect }: SqlContext,
  value: Value<StepName>,
  output: Sql,
): Readonly<Record<string, Sql>> {
  return {
    id: value('stepId'),
    run_id: sql`r.id`,
    name: value('name'),
    index: value('index'),
    kind: value('kind'),
    status: value('status'),
    attempt: value('attempt'),
    output,
    error: value('error'),
    error_detail: value('errorDetail'),
    checkpoint: value('checkpoint'),
    wait_name: value('waitName'),
    due_at: sql`coalesce(${value('dueAt')}, case when ${value('dueInMs')} is not null then ${dialect.nowPlus(value('dueInMs'))} end)`,
    lease_epoch: sql`r.lease_epoch`,
    claim_token: sql`r.claim_token`,
    started_at: dialect.nowPlus(value('minusDurationMs')),
    completed_at: sql`case when ${value('status')} in ('completed', 'failed') then ${dialect.now} end`,
  }
}

/** A row that is there is written over; when its wait ends stays as it is. */
export function overwriteStep(columns: Readonly<Record<string, Sql>>): Sql {
  const overwritten = Object.keys(columns).filter((name) => name !== 'id' && name !== 'run_id' && name !== 'due_at')
  const sets = overwritten.map((name) => sql`${sql.ref(name)} = ${sql.ref(`excluded.${name}`)}`)
  return sql`on conflict (id) do update set due_at = coalesce(s.due_at, excluded.due_at), ${list(...sets)}`
}

export function logColumns(value: Value<LogName>): Readonly<Record<string, Sql>> {
  return {
    id: value('logId'),
    run_id: sql`r.id`,
    step_name: value('stepName'),
    level: value('level'),
    message: value('message'),
    data: value('data'),
    timestamp: value('timestamp'),
  }
}

/** What changes on the run `r` while its holder keeps it. */
export function keepChanges(
  { dialect }: SqlContext,
  value: Value<RunName | 'commitNo'>,
): Readonly<Record<string, Sql>> {
  return {
    ...shared({ dialect }, value),
    lease_until: dialect.nowPlus(value('leaseMs')),
    last_event_sequence: sql`r.last_event_sequence + ${value('eventCount')}`,
  }
}

interface OutcomeChangeParams {
  readonly kind: Outcome['kind']
  readonly value: Value<RunName | OutcomeName | 'commitNo'>
  /** The instants at which the waits of the run end. */
  readonly waitsEnd: Sql
  /** How often it was woken, the write itself included. */
  readonly wakes?: Sql
}

/** What changes on the run `r` when its holder leaves it. */
export function outcomeChanges(
  { dialect }: SqlContext,
  { kind, value, waitsEnd, wakes = sql`r.wakes` }: OutcomeChangeParams,
): Readonly<Record<string, Sql>> {
  const { status, sets } = OUTCOMES[kind]
  const own = Object.entries(sets({ dialect, value, waitsEnd, wakes })).map(
    ([column, changed]) => [column, unlessFlagged(changed, sql.ref(`r.${column}`))] as const,
  )
  return {
    ...shared({ dialect }, value),
    ...Object.fromEntries(own),
    status: unlessFlagged(sql.lit(status), sql`'cancelled'`),
    ...whatEndsLose({ dialect }, status),
    owner_id: sql`null`,
    lease_until: sql`null`,
    last_event_sequence: sql`r.last_event_sequence + ${unlessFlagged(value('eventCount'), value('cancelledEventCount'))}`,
  }
}

type Dialect = Pick<SqlContext, 'dialect'>

function shared({ dialect }: Dialect, value: Value<RunName | 'commitNo'>): Record<string, Sql> {
  return {
    version: sql`r.version + 1`,
    updated_at: dialect.now,
    commit_no: value('commitNo'),
    crash_count: sql`case when ${value('hasProgressed')} = 1 then 0 else r.crash_count end`,
    current_step_index: sql`coalesce(${value('currentStepIndex')}, r.current_step_index)`,
    progress: sql`coalesce(${value('progress')}, r.progress)`,
    heartbeat_at: dialect.now,
  }
}

/** An ended run holds no slot; a waiting one keeps it only when asked to. */
function whatEndsLose({ dialect }: Dialect, status: OutcomeStatus): Record<string, Sql> {
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

// Spreads would make objects of so many properties slow ones, of kilobytes each.

/** The values of a step row. */
export function stepValues(step: StepWrite): Record<StepName, SqlValue> {
  const { due } = step
  return {
    stepId: step.id,
    name: step.name,
    index: step.index,
    kind: step.kind,
    status: step.status,
    attempt: step.attempt,
    output: step.output,
    error: step.error,
    errorDetail: toJson(step.errorDetail),
    checkpoint: step.checkpoint,
    waitName: step.waitName,
    dueAt: due !== null && 'at' in due ? due.at : null,
    dueInMs: due !== null && 'inMs' in due ? due.inMs : null,
    minusDurationMs: -step.durationMs,
  }
}

/** The values of the change on a run that its holder keeps. */
export function keepValues(commit: RunCommit): Record<RunName, SqlValue> {
  const eventCount = commit.events.length
  return {
    leaseMs: commit.leaseMs,
    currentStepIndex: commit.currentStepIndex,
    progress: toJson(commit.progress),
    hasProgressed: commit.hasProgressed ? 1 : 0,
    eventCount,
    cancelledEventCount: eventCount,
  }
}

/** The values of the change on the run itself. */
export function runValues(commit: RunCommit): Record<RunName | OutcomeName, SqlValue> {
  const { outcome, events } = commit
  return {
    leaseMs: commit.leaseMs,
    currentStepIndex: commit.currentStepIndex,
    progress: toJson(commit.progress),
    hasProgressed: commit.hasProgressed ? 1 : 0,
    eventCount: events.length + (outcome?.events.length ?? 0),
    cancelledEventCount: events.length + (outcome?.eventsIfCancelled.length ?? 0),
    ...outcomeValues(outcome),
  }
}

/** The answer to a commit, from the row of its run as it is afterwards. */
export function kept(row: Rows[number], children: readonly string[]): CommitAnswer {
  return {
    kept: true,
    status: row['status'] as RunStatus,
    seq: row['last_event_sequence'] as number,
    wakes: row['wakes'] as number,
    cancelRequested: row['cancel_requested_at'] !== null,
    children,
  }
}
