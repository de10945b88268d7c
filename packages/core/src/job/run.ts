import { decodeValue, type ErrorDetail, type RunStatus } from '../base'
import type { Progress, RunRecord, StepRecord, WaitingFor, EventRecord } from '../port'
import type { EventInput, EventType } from './events'

/** Whether anybody knows that a running run goes on. */
export type ContinuationState = 'NONE' | 'CONFIRMING'

/** What every run has, whatever its status. */
export interface RunFields {
  readonly id: string
  readonly jobName: string
  readonly jobVersion: string | null
  readonly tenant: string
  readonly payload: unknown
  readonly labels: Readonly<Record<string, string>>
  readonly idempotencyKey: string | null
  readonly concurrencyKey: string | null
  readonly concurrencyLimit: number
  readonly priority: number
  /** The execution this is, or the next one will be, counting only those ended by an error of the job. */
  readonly attempt: number
  /** The attempt before the one that a retry by hand began with, at first 0: `maxAttempts` counts from here. */
  readonly attemptBase: number
  /** Holders lost in a row without a recorded step in between. */
  readonly crashCount: number
  readonly currentStepIndex: number
  readonly progress: Progress | null
  /** When it may start; `null` while it waits for something without a time. */
  readonly availableAt: string | null
  readonly waitingFor: WaitingFor | null
  /** The worker that holds it. */
  readonly ownerId: string | null
  readonly leaseUntil: string | null
  readonly heartbeatAt: string | null
  /**
   * `CONFIRMING`: running, its job has a `continuation`, and its renewals are late, so that nobody knows whether it goes on;
   * until `leaseUntil` nobody takes it from its worker. By the clock of who asks.
   */
  readonly continuationState: ContinuationState
  readonly cancelRequestedAt: string | null
  readonly deadlineAt: string | null
  readonly errorDetail: ErrorDetail | null
  readonly parentRunId: string | null
  /** The run whose steps it began with: see `fork()`. */
  readonly forkedFrom: string | null
  /** The schedule that created it, and the instant for which it did; `null` for one that was started by hand. */
  readonly scheduleId: string | null
  readonly scheduledFor: string | null
  readonly version: number
  readonly lastEventSequence: number
  readonly createdAt: string
  readonly updatedAt: string
  readonly startedAt: string | null
  readonly finishedAt: string | null
}

/** A run as it was when it was read. `status` tells which of `output` and `error` is there. */
export type Run<TOutput = unknown> = RunFields &
  (
    | { readonly status: 'completed'; readonly output: TOutput; readonly error: null }
    | { readonly status: 'failed' | 'timed_out'; readonly output: null; readonly error: string }
    | {
        readonly status: Exclude<RunStatus, 'completed' | 'failed' | 'timed_out'>
        readonly output: null
        /** What the attempt before failed with, while a retry waits. */
        readonly error: string | null
      }
  )

/** What `trigger` answers. `deduplicated`: the idempotency key had a run already, and this is it. */
export type TriggeredRun<TOutput = unknown> = Run<TOutput> & { readonly deduplicated: boolean }

/** A run that has its output. */
export type CompletedRun<TOutput = unknown> = Extract<Run<TOutput>, { status: 'completed' }>

/** One step of a run as the database has it. */
export interface Step {
  readonly name: string
  readonly index: number
  readonly kind: StepRecord['kind']
  readonly status: StepRecord['status']
  readonly attempt: number
  readonly output: unknown
  readonly error: string | null
  readonly errorDetail: ErrorDetail | null
  readonly checkpoint: unknown
  readonly startedAt: string
  readonly completedAt: string | null
  /** When a wait ends by itself. */
  readonly dueAt: string | null
}

export function toRun<TOutput = unknown>(
  record: RunRecord,
  continuationState: ContinuationState = 'NONE',
): Run<TOutput> {
  const { status } = record
  const isCompleted = status === 'completed'
  const hasEndedBadly = status === 'failed' || status === 'timed_out'
  // One literal: an object that is spread into a larger one costs many times as much, and this is made for each trigger.
  const run = {
    id: record.id,
    jobName: record.jobName,
    jobVersion: record.jobVersion,
    tenant: record.tenant,
    payload: decodeValue(record.payload),
    labels: record.labels,
    idempotencyKey: record.idempotencyKey,
    concurrencyKey: record.concurrencyKey,
    concurrencyLimit: record.concurrencyLimit,
    priority: record.priority,
    attempt: record.attempt,
    attemptBase: record.attemptBase,
    crashCount: record.crashCount,
    currentStepIndex: record.currentStepIndex,
    progress: record.progress,
    availableAt: record.availableAt,
    waitingFor: record.waitingFor,
    ownerId: record.ownerId,
    leaseUntil: record.leaseUntil,
    heartbeatAt: record.heartbeatAt,
    continuationState,
    cancelRequestedAt: record.cancelRequestedAt,
    deadlineAt: record.deadlineAt,
    errorDetail: record.errorDetail,
    parentRunId: record.parentRunId,
    forkedFrom: record.forkedFrom ?? null,
    scheduleId: record.scheduleId,
    scheduledFor: record.scheduledFor,
    version: record.version,
    lastEventSequence: record.lastEventSequence,
    createdAt: record.createdAt,
    updatedAt: record.updatedAt,
    startedAt: record.startedAt,
    finishedAt: record.finishedAt,
    status,
    output: isCompleted ? decodeValue(record.output) : null,
    error: isCompleted ? null : hasEndedBadly ? (record.error ?? '') : record.error,
  }
  return run as Run<TOutput>
}

export function toStep(record: StepRecord): Step {
  return {
    name: record.name,
    index: record.index,
    kind: record.kind,
    status: record.status,
    attempt: record.attempt,
    output: decodeValue(record.output),
    error: record.error,
    errorDetail: record.errorDetail,
    checkpoint: decodeValue(record.checkpoint),
    startedAt: record.startedAt,
    completedAt: record.completedAt,
    dueAt: record.dueAt,
  }
}

/** An event as the history has it, discriminated by `type`: without `sequence`, which is a process's own. */
export type StoredEvent<T extends EventType = EventType> = {
  [Type in T]: EventInput<Type> & {
    readonly runId: string
    readonly jobName: string
    /** By the clock of the storage. */
    readonly timestamp: string
    /** The event's number in the history of its run, from 1. */
    readonly seq: number
  }
}[T]

/** The payload of a run is stored once, on the run. */
export function toStoredEvent(
  { type, payload, seq, createdAt }: EventRecord,
  run: Pick<RunRecord, 'id' | 'jobName' | 'payload'>,
): StoredEvent {
  const own = decodeValue(payload) as object
  const withPayload = type === 'run:start' || type === 'run:trigger' ? { payload: decodeValue(run.payload) } : {}
  const fields = { type, runId: run.id, jobName: run.jobName, ...withPayload, ...own, seq, timestamp: createdAt }
  return fields as unknown as StoredEvent
}
