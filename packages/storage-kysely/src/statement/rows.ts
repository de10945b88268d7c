import type {
  AuditRecord,
  ErrorDetail,
  EventRecord,
  LogRecord,
  MessageRecord,
  Progress,
  RunRecord,
  ScheduleRecord,
  SignalRecord,
  StepRecord,
  WaitingFor,
} from '@coji/durably-core/storage'
import { sql } from 'kysely'
import type { Sql, SqlContext } from './statement'
import type {
  AuditTable,
  InboxTable,
  LogsTable,
  RunEventsTable,
  RunsTable,
  SchedulesTable,
  SignalsTable,
  StepsTable,
} from '../dialect'

/** A row as a driver gives it. */
export type Row = Readonly<Record<string, unknown>>

type RunRow = Omit<RunsTable, 'labels'> & { readonly labels: string }
type StepRow = StepsTable & { readonly is_due: number | null }

/** The columns of a run, for `select` and `returning`. Names stay bare by default: `returning` may not know the alias. */
export function runColumns({ tables, dialect }: SqlContext, alias?: string): Sql {
  const labels = dialect.objectOf(sql.ref('l.name'), sql.ref('l.value'))
  const id = sql.ref(alias === undefined ? 'id' : `${alias}.id`)
  return sql`${dialect.columns('runs', alias)}, (
    select ${labels} from ${tables.run_labels} as l where l.run_id = ${id}) as labels`
}

// One literal: what is put together from several becomes a slow object of kilobytes, and this is made for each run claimed.
export function toRun(raw: Row): RunRecord {
  const row = raw as unknown as RunRow
  return {
    id: row.id,
    tenant: row.tenant,
    jobName: row.job_name,
    jobVersion: row.job_version,
    payload: row.payload,
    status: row.status,
    labels: row.labels === '{}' ? NO_LABELS : (JSON.parse(row.labels) as Record<string, string>),
    idempotencyKey: row.idempotency_key,
    concurrencyKey: row.concurrency_key,
    concurrencyLimit: row.concurrency_limit,
    concurrencySlot: row.concurrency_slot,
    holdKeyWhileWaiting: row.hold_key_while_waiting === 1,
    priority: row.priority,
    availableAt: row.available_at,
    waitingFor: parse<WaitingFor>(row.waiting_for),
    currentStepIndex: row.current_step_index,
    progress: parse<Progress>(row.progress),
    output: row.output,
    error: row.error,
    errorDetail: parse<ErrorDetail>(row.error_detail),
    version: row.version,
    attempt: row.attempt,
    attemptBase: row.attempt_base,
    crashCount: row.crash_count,
    assignments: row.assignments,
    assignedWorkerId: row.assigned_worker_id,
    assignedAt: row.assigned_at,
    ownerId: row.owner_id,
    // The column keeps the last token, by which a commit that is sent again is known.
    claimToken: row.status === 'running' ? row.claim_token : null,
    leaseEpoch: row.lease_epoch,
    leaseUntil: row.lease_until,
    leaderEpoch: row.leader_epoch,
    commitNo: row.commit_no,
    wakes: row.wakes,
    wakesWanted: row.wakes_wanted,
    restUntil: row.rest_until,
    lastEventSequence: row.last_event_sequence,
    cancelRequestedAt: row.cancel_requested_at,
    timeoutMs: row.timeout_ms,
    deadlineAt: row.deadline_at,
    parentRunId: row.parent_run_id,
    forkedFrom: row.forked_from,
    alsoAwaitedBy: parse<readonly string[]>(row.also_awaited_by) ?? NO_IDS,
    scheduleId: row.schedule_id,
    scheduledFor: row.scheduled_for,
    logRef: row.log_ref,
    traceParent: row.trace_parent,
    heartbeatAt: row.heartbeat_at,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    startedAt: row.started_at,
    finishedAt: row.finished_at,
  }
}

export function toStep(raw: Row): StepRecord {
  const row = raw as unknown as StepRow
  return {
    id: row.id,
    runId: row.run_id,
    name: row.name,
    index: row.index,
    kind: row.kind,
    status: row.status,
    attempt: row.attempt,
    output: row.output,
    error: row.error,
    errorDetail: parse<ErrorDetail>(row.error_detail),
    checkpoint: row.checkpoint,
    waitName: row.wait_name,
    dueAt: row.due_at,
    isDue: row.is_due === 1,
    leaseEpoch: row.lease_epoch,
    startedAt: row.started_at,
    completedAt: row.completed_at,
  }
}

export function toLog(raw: Row): LogRecord {
  const row = raw as unknown as LogsTable
  return {
    id: row.id,
    runId: row.run_id,
    stepName: row.step_name,
    level: row.level,
    message: row.message,
    data: row.data,
    timestamp: row.timestamp,
  }
}

export function toEvent(raw: Row): EventRecord {
  const row = raw as unknown as RunEventsTable
  return { runId: row.run_id, seq: row.seq, type: row.event_type, payload: row.payload, createdAt: row.created_at }
}

export function toSignal(raw: Row): SignalRecord {
  const row = raw as unknown as SignalsTable
  return {
    runId: row.run_id,
    position: row.position,
    name: row.name,
    payload: row.payload,
    createdAt: row.created_at,
  }
}

export function toMessage(raw: Row): MessageRecord {
  const row = raw as unknown as InboxTable
  return {
    id: row.id,
    tenant: row.tenant,
    type: row.type,
    payload: row.payload,
    dedupeKey: row.dedupe_key,
    availableAt: row.available_at,
    createdAt: row.created_at,
    processedAt: row.processed_at,
    wanted: row.wanted,
    round: row.round,
  }
}

export function toSchedule(raw: Row): ScheduleRecord {
  const row = raw as unknown as SchedulesTable
  return {
    id: row.id,
    tenant: row.tenant,
    name: row.name,
    source: row.source,
    jobName: row.job_name,
    payload: row.payload,
    definition: row.definition,
    overlap: row.overlap,
    version: row.version,
    pausedBecause: row.paused_because,
    firedUntil: row.fired_until,
    nextAt: row.next_at,
    dueAt: row.due_at,
    fired: Number(row.fired),
    missed: Number(row.missed),
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    endedAt: row.ended_at,
  }
}

export function toAudit(raw: Row): AuditRecord {
  const row = raw as unknown as AuditTable
  return {
    id: row.id,
    at: row.at,
    tenant: row.tenant,
    actor: row.actor,
    action: row.action,
    targetKind: row.target_kind,
    target: row.target,
    before: row.before,
    after: row.after,
  }
}

/** For the columns that hold JSON of the storage's own; values of users stay text. */
export function toJson(value: object | null): string | null {
  return value === null ? null : JSON.stringify(value)
}

const NO_IDS: readonly string[] = Object.freeze([])
const NO_LABELS: Readonly<Record<string, string>> = Object.freeze({})

function parse<T>(text: string | null): T | null {
  return text === null ? null : (JSON.parse(text) as T)
}
