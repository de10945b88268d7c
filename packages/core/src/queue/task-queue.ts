import type { StandardSchema } from '../base'
import type { PauseOptions } from '../client'
import type { StopOptions } from '../engine'
import type { JobDeclaration } from '../job'
import type { DrainOptions, DrainResult } from '../worker'
import { createInstance } from '../instance'
import { createEnqueue, type EnqueuedTask, type EnqueueItem, type EnqueueOptions } from './enqueue'
import {
  resolveDeclaration,
  resolveHandler,
  type TaskBody,
  type TaskDeclaration,
  type TaskHandler,
  type TaskOptions,
  toHandler,
  runAttempt,
} from './handler'
import { Handlers } from './handlers'
import { resolveOptions, type TaskQueueOptions } from './options'
import { QueueSwitch, TaskPauses } from './queue-switch'
import { Retention } from './retention'
import { type TaskEvent, TaskEvents, type TaskEventType, logTasks } from './task-events'
import { createTaskAccess, type TaskAccess } from './tasks'

/** The types of tasks that a type map knows. */
export type TypeIn<TTasks> = keyof TTasks & string

/** What the handler gets is what the schema makes of what is enqueued. */
export interface WithSchema<TInput, TPayload> {
  readonly schema: StandardSchema<TInput, TPayload>
}

/**
 * A queue of tasks: data that wait for a handler of their type, are tried again when it fails, and can be watched.
 * `TTasks` says which payload each type has: `createTaskQueue<{ send_email: Mail }>()`.
 */
export interface TaskQueue<TTasks extends object = Record<string, unknown>> extends TaskAccess {
  /** Says what is done for tasks of a type. Each type has one handler; register all before `start()`. */
  register<TType extends TypeIn<TTasks>, TPayload>(
    handler: TaskHandler<TType, TTasks[TType], TPayload> & WithSchema<TTasks[TType], TPayload>,
  ): void
  register<TType extends TypeIn<TTasks>>(handler: TaskHandler<TType, TTasks[TType]>): void
  register<TType extends TypeIn<TTasks>>(taskType: TType, execute: TaskBody<TTasks[TType]>): void
  register<TType extends TypeIn<TTasks>, TPayload>(
    taskType: TType,
    options: TaskOptions<TTasks[TType], TPayload> & WithSchema<TTasks[TType], TPayload>,
    execute: TaskBody<TPayload>,
  ): void
  register<TType extends TypeIn<TTasks>>(
    taskType: TType,
    options: TaskOptions<TTasks[TType]>,
    execute: TaskBody<TTasks[TType]>,
  ): void
  /**
   * Makes a type known that others have the handler for: its tasks can be enqueued and read here, and are not executed,
   * nor removed by `keep`.
   */
  declare<TType extends TypeIn<TTasks>>(taskType: TType, options?: TaskDeclaration<TTasks[TType]>): void
  /** Resolves when the task is stored; a queue, here or elsewhere, executes it. Rejects with nothing enqueued. */
  enqueue<TType extends TypeIn<TTasks>>(
    taskType: TType,
    payload: TTasks[TType],
    options?: EnqueueOptions,
  ): Promise<EnqueuedTask>
  /** All or none, in one write; the answers are in the order of the items. */
  enqueueMany<TType extends TypeIn<TTasks>>(
    taskType: TType,
    items: readonly EnqueueItem<TTasks[TType]>[],
  ): Promise<EnqueuedTask[]>
  /** Creates or updates the tables. The first use does it as well, unless that is in a transaction. */
  migrate(): Promise<void>
  /** Starts executing tasks. Returns at once. */
  start(): void
  /**
   * Begins no more tasks and waits for those in progress, or gives them back after `timeout` ms. In a handler it would
   * wait for that very task: there, do not await it, or give it a time-out.
   */
  stop(options?: StopOptions): Promise<void>
  /** Begins no more tasks of a type, or of any, here. Those in progress go on. A type that is only declared never begins. */
  pause(taskType?: TypeIn<TTasks>, options?: PauseOptions<'worker'>): void
  /** With `scope: 'database'` nobody begins tasks of the type, or of any that is known here, until they are resumed so. */
  pause(taskType: TypeIn<TTasks> | undefined, options: PauseOptions<'database'>): Promise<void>
  resume(taskType?: TypeIn<TTasks>, options?: PauseOptions<'worker'>): void
  resume(taskType: TypeIn<TTasks> | undefined, options: PauseOptions<'database'>): Promise<void>
  /** Executes what is due and returns: for serverless functions, cron and tests. */
  runUntilIdle(options?: DrainOptions): Promise<DrainResult>
  /** Stops at once, gives back what is in progress, and closes the storage: for a shared one `stop()` is enough. */
  close(): Promise<void>
  /** What this queue object does, or sees being done. Returns how to end it. */
  on<T extends TaskEventType>(type: T, listener: (event: TaskEvent<T>) => void): () => void
}

/**
 * A task queue in the memory of this process, or in any storage. It executes nothing until `start()`.
 *
 * ```ts
 * const queue = createTaskQueue()
 * queue.register('send_email', async (mail) => { await send(mail) })
 * queue.start()
 * await queue.enqueue('send_email', { to: 'mary@example.com' })
 * ```
 */
export function createTaskQueue<TTasks extends object = Record<string, unknown>>(
  options: TaskQueueOptions = {},
): TaskQueue<TTasks> {
  const { engine, clock, keep, logger, retry } = resolveOptions(options)
  const instance = createInstance(engine)
  const { durably } = instance
  const handlers = new Handlers(retry.maxAttempts)
  const events = new TaskEvents({ durably, clock, attemptsOf: (run) => handlers.attemptsOf(run) })
  const retention = new Retention({ durably, events, clock, keep, jobNames: () => handlers.handledJobNames() })
  const queueSwitch = new QueueSwitch({ durably, retention, clock })
  const pauses = new TaskPauses({ durably, handlers, queueSwitch })
  if (logger !== null) logTasks(logger, events, durably)

  const registerJob = (job: JobDeclaration) => void durably.register({ job })

  function register(
    first: TaskHandler | string,
    second?: TaskOptions | TaskBody<unknown>,
    third?: TaskBody<unknown>,
  ): void {
    const handler = resolveHandler({
      handler: toHandler(first, second, third),
      retry,
      runAttempt(resolved, attempt, payload) {
        events.started(attempt, resolved.taskType)
        return runAttempt({ handler: resolved, attempt, payload, clock })
      },
      succeeded(taskId) {
        events.ended(taskId)
        retention.noteEnd()
      },
      givenUp: (taskId) => events.forget(taskId),
    })
    handlers.add(handler, registerJob)
    pauses.added(handler.job.name)
  }

  const queue: TaskQueue = {
    ...createTaskAccess({ durably, handlers, clock, prepared: () => queueSwitch.prepared() }),
    migrate: () => queueSwitch.prepared(),
    register: register as TaskQueue['register'],
    declare: (taskType, declaration = {}) =>
      handlers.declare(taskType, resolveDeclaration(taskType, declaration, retry), registerJob),
    ...createEnqueue({ instance, handlers, queueSwitch }),
    start: () => queueSwitch.start(),
    stop: (stopOptions) => queueSwitch.stop(stopOptions),
    pause: ((taskType, pauseOptions) => pauses.pause(taskType, pauseOptions)) as TaskQueue['pause'],
    resume: ((taskType, pauseOptions) => pauses.resume(taskType, pauseOptions)) as TaskQueue['resume'],
    async runUntilIdle(drainOptions) {
      await queueSwitch.prepared()
      const result = await durably.runUntilIdle(drainOptions)
      await retention.sweep()
      return result
    },
    close: () => queueSwitch.close(),
    on: (type, listener) => events.on(type, listener),
  }
  return queue as unknown as TaskQueue<TTasks>
}
