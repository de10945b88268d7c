import { ENDED_STATUSES, type EndedStatus, type RunStatus } from '../base'
import type { Run } from '../job'

/** Every state, in the order of a task's life. */
export const TASK_STATES = ['queued', 'running', 'retry_scheduled', 'succeeded', 'dead'] as const

/** Where a task is in its life. */
export type TaskState = (typeof TASK_STATES)[number]

/** States in which a task stays until somebody changes or removes it. */
export const ENDED_TASK_STATES = ['succeeded', 'dead'] as const

/** One of them. */
export type EndedTaskState = (typeof ENDED_TASK_STATES)[number]

/** A task as it was when it was read. */
export interface Task {
  readonly id: string
  readonly type: string
  /** As its schema parsed it. */
  readonly payload: unknown
  readonly state: TaskState
  /** Executions begun, crashes included, since it was enqueued or redriven; 0 before the first. */
  readonly attempts: number
  readonly maxAttempts: number
  /** What the last attempt failed with; `null` once it succeeded. */
  readonly lastError: string | null
  /** The time it was put off to, until it begins; `null` for a task that was not, that runs, or that has ended. */
  readonly nextRunAt: string | null
  readonly priority: number
  readonly createdAt: string
  readonly updatedAt: string
  readonly startedAt: string | null
  readonly finishedAt: string | null
}

/** Which runs are the tasks of a state. */
export interface StateFilter {
  readonly status: readonly RunStatus[]
  readonly waitsForRetry?: boolean
}

export const ENDED_RUNS: Readonly<Record<EndedTaskState, readonly EndedStatus[]>> = {
  succeeded: ['completed'],
  dead: ENDED_STATUSES.filter((status) => status !== 'completed'),
}

export const RUNS_OF_STATE: Readonly<Record<TaskState, StateFilter>> = {
  queued: { status: ['pending', 'assigned', 'orphaned'], waitsForRetry: false },
  running: { status: ['running'] },
  retry_scheduled: { status: ['pending'], waitsForRetry: true },
  succeeded: { status: ENDED_RUNS.succeeded },
  dead: { status: ENDED_RUNS.dead },
}

/** What is recorded of a task that somebody cancelled: as a run, or by removing it at the moment it was started. */
export const CANCELLED = 'The task was cancelled.'

const JOB_PREFIX = 'queue:'

/** The job whose runs are the tasks of a type. No worker takes it for one of its own. */
export function jobNameOf(taskType: string): string {
  return `${JOB_PREFIX}${taskType}`
}

/** The type of the tasks that are runs of a job; `null` for other jobs. */
export function taskTypeOf(jobName: string): string | null {
  return jobName.startsWith(JOB_PREFIX) ? jobName.slice(JOB_PREFIX.length) : null
}

/** What a task is made from, as the storage or as the public entry has it. */
type TaskRun = Pick<
  Run,
  | 'id'
  | 'jobName'
  | 'status'
  | 'waitingFor'
  | 'attempt'
  | 'attemptBase'
  | 'crashCount'
  | 'cancelRequestedAt'
  | 'availableAt'
  | 'error'
  | 'errorDetail'
  | 'priority'
  | 'createdAt'
  | 'updatedAt'
  | 'startedAt'
  | 'finishedAt'
>

export function toTask(run: TaskRun, payload: unknown, maxAttempts: number): Task {
  const state = stateOf(run)
  const isWaiting = state === 'queued' || state === 'retry_scheduled'
  const isDelayed = state === 'queued' && run.availableAt !== run.createdAt
  return {
    id: run.id,
    type: taskTypeOf(run.jobName) ?? run.jobName,
    payload,
    state,
    // One that has no attempt left is claimed once more, to be dead.
    attempts: Math.min(attemptsOf(run), maxAttempts),
    maxAttempts,
    lastError: run.error ?? silentErrorOf(run, isWaiting),
    nextRunAt: state === 'retry_scheduled' || isDelayed ? run.availableAt : null,
    priority: run.priority,
    createdAt: run.createdAt,
    updatedAt: run.updatedAt,
    startedAt: run.startedAt,
    finishedAt: run.finishedAt,
  }
}

/** For what ended, or is tried again, without an error of the handler. */
function silentErrorOf({ status, crashCount }: TaskRun, isWaiting: boolean): string | null {
  if (status === 'cancelled') return CANCELLED
  return isWaiting && crashCount > 0 ? 'Its worker was lost.' : null
}

function stateOf({ status, waitingFor }: TaskRun): TaskState {
  return status === 'pending' && waitingFor?.kind === 'retry' ? 'retry_scheduled' : STATE_OF[status]
}

/** Of what does not wait for a retry. */
const STATE_OF: Readonly<Record<RunStatus, TaskState>> = {
  pending: 'queued',
  assigned: 'queued',
  orphaned: 'queued',
  running: 'running',
  completed: 'succeeded',
  failed: 'dead',
  timed_out: 'dead',
  cancelled: 'dead',
}

/** Executions that an error or the end of their worker ended, and the one that is, or was, going on. */
function attemptsOf(run: TaskRun): number {
  const ended = run.attempt - run.attemptBase - 1 + run.crashCount
  const wasExecuted = EXECUTED.includes(run.status) || run.cancelRequestedAt !== null
  const isOfCurrent = wasExecuted && !isCrashLimit(run)
  return isOfCurrent ? ended + 1 : ended
}

/** Then nobody executed it any more; a handler's own error may have that code, but not that name as well. */
function isCrashLimit({ errorDetail }: TaskRun): boolean {
  return errorDetail?.name === 'CrashLimitError' && errorDetail.code === 'crash_limit'
}

/** States in, or from, which somebody executes a run. To be cancelled one is asked only while somebody does. */
const EXECUTED: readonly RunStatus[] = ['running', 'completed', 'failed', 'timed_out']
