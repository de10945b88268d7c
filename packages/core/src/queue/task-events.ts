import { type Clock, Listeners } from '../base'
import type { Durably } from '../instance'
import type { Run, PlainAttempt } from '../job'
import { CANCELLED, taskTypeOf } from './task'

/** What every event of a task carries. */
export interface OfTask {
  readonly taskId: string
  readonly taskType: string
}

/** What every event of an attempt carries. */
export interface OfAttempt extends OfTask {
  /** Which execution of the task, from 1. */
  readonly attempt: number
}

/** What the events carry, by their `type`. */
export interface EventFields {
  /** It is in the queue: new, by `redrive()`, given back by a worker that stops, or taken from one that died. */
  enqueued: OfTask & { readonly cause: 'new' | 'redriven' | 'released' | 'recovered' }
  /** An attempt begins. */
  started: OfAttempt
  /** It is done. */
  succeeded: OfAttempt & { readonly durationMs: number }
  /** An attempt failed; `retry_scheduled` or `dead` follows. */
  failed: OfAttempt & { readonly error: string; readonly durationMs: number }
  /** `nextRunAt` by the clock of this process; `status()` has the one that counts. */
  retry_scheduled: OfAttempt & { readonly error: string; readonly backoffMs: number; readonly nextRunAt: string }
  /** It failed for good: `redrive()` puts it back. */
  dead: OfTask & { readonly attempts: number; readonly error: string }
}

/** The `type` of a task's event. */
export type TaskEventType = keyof EventFields

/** What happens to tasks, as far as this queue object does or sees it. */
export type TaskEvent<T extends TaskEventType = TaskEventType> = {
  [Type in T]: { readonly type: Type; readonly timestamp: string } & EventFields[Type]
}[T]

const EVERY_TYPE: Readonly<Record<TaskEventType, true>> = {
  enqueued: true,
  started: true,
  succeeded: true,
  failed: true,
  retry_scheduled: true,
  dead: true,
}

/** Every event of a task there is. */
export const TASK_EVENT_TYPES = Object.keys(EVERY_TYPE) as readonly TaskEventType[]

/** An event without what it has of its run. */
type Bare<T extends TaskEventType = TaskEventType> = T extends unknown
  ? Omit<TaskEvent<T>, 'taskId' | 'taskType' | 'timestamp'>
  : never

/** The part of an event of a run that all of them have. */
interface OfRun {
  readonly runId: string
  readonly jobName: string
  readonly timestamp: string
}

/** As the engine has it: it is kept until the end, and nothing is made for it. */
type BegunAttempt = Pick<PlainAttempt, 'runId' | 'tries' | 'begunAt'>

export interface TaskEventsParams {
  readonly durably: Durably
  readonly clock: Clock
  /** As the task shows them. */
  readonly attemptsOf: (run: Run) => number
}

/** Says of tasks what the engine says of their runs. */
export class TaskEvents {
  readonly #durably: Durably
  readonly #clock: Clock
  readonly #attemptsOf: (run: Run) => number
  readonly #listeners: Listeners<TaskEventType>
  /** Those in progress here. */
  readonly #attempts = new Map<string, BegunAttempt>()
  /** Those that began before the end of the one before was heard of. */
  readonly #early = new Map<string, BegunAttempt>()
  readonly #heard = new Set<TaskEventType>()

  constructor({ durably, clock, attemptsOf }: TaskEventsParams) {
    this.#durably = durably
    this.#clock = clock
    this.#attemptsOf = attemptsOf
    this.#listeners = new Listeners({
      types: TASK_EVENT_TYPES,
      whose: ' of a task',
      onError: (error, type) => durably.reportError(error, `listener of ${type}`),
    })
    durably.on('run:release', (run) => this.#enqueued(run, 'released'))
    durably.on('run:recover', (run) => this.#enqueued(run, 'recovered'))
    durably.on('run:fail', (run) => this.#died(run, run.error))
    durably.on('run:retry', ({ byHand, error, delayMs, ...run }) =>
      byHand ? this.#enqueued(run, 'redriven') : this.#retries(run, error ?? '', delayMs ?? 0),
    )
    durably.on('run:cancel', (run) => this.#cancelled(run, run.requested))
    durably.on('worker:lease-lost', (run) => void this.#takeAttempt(run))
  }

  on<T extends TaskEventType>(type: T, listener: (event: TaskEvent<T>) => void): () => void {
    const off = this.#listeners.add(type, listener)
    this.#hear(type)
    return off
  }

  /** What happens to every task is asked for when somebody wants to know: the engine need not tell it before. */
  #hear(type: TaskEventType): void {
    if (this.#heard.has(type)) return
    this.#heard.add(type)
    if (type === 'enqueued') this.#durably.on('run:trigger', (run) => this.#enqueued(run, 'new'))
    if (type === 'succeeded') this.#durably.on('run:complete', (run) => this.#succeeded(run))
  }

  /** The handler is about to be called. */
  started(begun: BegunAttempt, taskType: string): void {
    const { runId: taskId, tries: attempt } = begun
    const before = this.#attempts.get(taskId)?.tries
    // After a redrive they are counted anew.
    if (before !== undefined && (before === attempt - 1 || attempt === 1)) this.#early.set(taskId, begun)
    else this.#attempts.set(taskId, begun)
    if (!this.#heard.has('started')) return
    this.#emit({ type: 'started', taskId, taskType, attempt, timestamp: toText(this.#clock.now()) })
  }

  /** It is done, and nobody needs the attempt any more but who is told of it next. */
  ended(taskId: string): void {
    if (!this.#heard.has('succeeded')) this.forget(taskId)
  }

  #enqueued(run: OfRun, cause: TaskEvent<'enqueued'>['cause']): void {
    // One that was given back has no end. Any other began before this was told.
    if (cause === 'released') this.forget(run.runId)
    this.#tell(run, { type: 'enqueued', cause })
  }

  #succeeded(run: OfRun): void {
    const ended = this.#takeAttempt(run)
    if (ended !== null) this.#tell(run, { type: 'succeeded', ...ended })
  }

  #retries(run: OfRun, error: string, backoffMs: number): void {
    const ended = this.#takeAttempt(run)
    if (ended === null) return
    const { attempt } = ended
    const nextRunAt = toText(Date.parse(run.timestamp) + backoffMs)
    this.#tell(run, { type: 'failed', ...ended, error })
    this.#tell(run, { type: 'retry_scheduled', attempt, error, backoffMs, nextRunAt })
  }

  #died(run: OfRun, error: string): void {
    const ended = this.#takeAttempt(run)
    if (ended === null) return void this.#diedUnseen(run, error)
    this.#tell(run, { type: 'failed', ...ended, error })
    this.#tell(run, { type: 'dead', attempts: ended.attempt, error })
  }

  /** Its worker was lost once too often: how often, only its record knows. */
  async #diedUnseen(run: OfRun, error: string): Promise<void> {
    if (taskTypeOf(run.jobName) === null) return
    const record = await this.#durably.getRun(run.runId).catch(() => null)
    const attempts = record === null ? 0 : this.#attemptsOf(record)
    this.#tell(run, { type: 'dead', attempts, error })
  }

  /** One that was waiting was removed. */
  #cancelled(run: OfRun, isRequested: boolean): void {
    if (!isRequested && this.#attempts.has(run.runId)) this.#died(run, CANCELLED)
  }

  /** Nobody will hear of the end of its attempt. */
  forget(runId: string): void {
    this.#attempts.delete(runId)
    this.#early.delete(runId)
  }

  #takeAttempt({ runId }: OfRun) {
    const attempt = this.#attempts.get(runId)
    if (attempt === undefined) return null
    this.#attempts.delete(runId)
    const next = this.#early.get(runId)
    if (next !== undefined) {
      this.#early.delete(runId)
      this.#attempts.set(runId, next)
    }
    return { attempt: attempt.tries, durationMs: Math.round(this.#clock.monotonic() - attempt.begunAt) }
  }

  #tell({ runId, jobName, timestamp }: OfRun, event: Bare): void {
    const taskType = taskTypeOf(jobName)
    if (taskType !== null) this.#emit({ ...event, taskId: runId, taskType, timestamp })
  }

  #emit(event: TaskEvent): void {
    this.#listeners.tell(event.type, event)
  }
}

function toText(ms: number): string {
  return new Date(ms).toISOString()
}

/** Where lines about tasks go: a message, and fields for machines. `console` is one. */
export interface TaskLogger {
  info(message: string, fields: object): void
  warn(message: string, fields: object): void
  error(message: string, fields: object): void
}

const LEVELS = {
  enqueued: 'info',
  started: 'info',
  succeeded: 'info',
  failed: 'warn',
  retry_scheduled: 'warn',
  dead: 'error',
} as const satisfies Record<TaskEvent['type'], keyof TaskLogger>

/** One line for each event of a task, and for each that a handler logs. */
export function logTasks(logger: TaskLogger, events: TaskEvents, durably: Durably): void {
  for (const type of TASK_EVENT_TYPES) {
    events.on(type, ({ type: event, ...fields }) => logger[LEVELS[type]](`task ${event}`, { event, ...fields }))
  }
  durably.on('log:write', ({ runId, level, message, data }) => logger[level](message, { taskId: runId, data }))
}
