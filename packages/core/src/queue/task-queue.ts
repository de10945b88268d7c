import { createDurably, type DrainOptions, type DrainResult, type StopOptions } from '../index'
import {
  resolveHandler,
  toHandler,
  type HandlerForm,
  type TaskBody,
  type TaskHandler,
  type TaskOptions,
} from './handler'
import { Handlers } from './handlers'
import { resolveOptions, type TaskQueueOptions } from './options'
import { perform } from './perform'
import { QueueSwitch } from './queue-switch'
import { Retention } from './retention'
import type { Task } from './task'
import { TaskEvents, type TaskEvent, type TaskEventType } from './task-events'
import { logTasks } from './task-log'
import { createTaskAccess, type TaskAccess } from './tasks'

/** When and in which order a task runs. */
export interface EnqueueOptions {
  /** Milliseconds until it may run. */
  readonly delay?: number | undefined
  /** The instant from which it may run. */
  readonly runAt?: Date | string | undefined
  /** A second task of the same type and key is the first one, for as long as that is kept. */
  readonly dedupeKey?: string | undefined
  /** Higher runs first. Default 0. */
  readonly priority?: number | undefined
  /** A transaction of the caller's on the database of the queue: the task is there with it, or not at all. */
  readonly transaction?: unknown
}

/** One task of a list. */
export interface EnqueueItem<TPayload = unknown> {
  readonly payload: TPayload
  readonly options?: EnqueueOptions | undefined
}

/** What `enqueue` answers. `deduplicated`: the key had a task already, and this is it. */
export type EnqueuedTask = Task & { readonly deduplicated: boolean }

type TypeIn<TTasks> = keyof TTasks & string

/**
 * A queue of tasks: data that wait for a handler of their type, are tried again when it fails, and can be watched.
 * `TTasks` says which payload each type has: `createTaskQueue<{ send_email: Mail }>()`.
 */
export interface TaskQueue<TTasks extends object = Record<string, unknown>> extends TaskAccess {
  /** Says what is done for tasks of a type. Each type has one handler; register all before `start()`. */
  register<TType extends TypeIn<TTasks>, TPayload = TTasks[TType]>(
    handler: TaskHandler<TType, TTasks[TType], TPayload>,
  ): void
  register<TType extends TypeIn<TTasks>, TPayload extends TTasks[TType]>(
    taskType: TType,
    execute: TaskBody<TPayload>,
  ): void
  register<TType extends TypeIn<TTasks>, TPayload = TTasks[TType]>(
    taskType: TType,
    options: TaskOptions<TTasks[TType], TPayload>,
    execute: TaskBody<TPayload>,
  ): void
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
  /** Starts executing tasks. Returns at once. */
  start(): void
  /** Begins no more tasks and waits for those in progress, or gives them back after `timeout` ms. */
  stop(options?: StopOptions): Promise<void>
  /** Begins no more tasks of a type, or of any, in this process. Those in progress go on. */
  pause(taskType?: TypeIn<TTasks>): void
  resume(taskType?: TypeIn<TTasks>): void
  /** Executes what is due and returns: for serverless functions, cron and tests. */
  runUntilIdle(options?: DrainOptions): Promise<DrainResult>
  /** Stops at once and closes the storage. Tasks in progress are given back. */
  close(): Promise<void>
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
  const { engine, clock, keep, logger, ...defaults } = resolveOptions(options)
  const durably = createDurably(engine)
  const handlers = new Handlers(defaults.maxAttempts)
  const events = new TaskEvents({ durably, clock, attemptsOf: (run) => handlers.toTask(run).attempts })
  const retention = new Retention({ durably, events, clock, keep, jobNames: () => handlers.jobNames() })
  const power = new QueueSwitch({ durably, retention, clock })
  if (logger !== null) logTasks(logger, events, durably)

  function register(...given: HandlerForm): void {
    const handler = resolveHandler({
      handler: toHandler(given),
      defaults,
      perform(resolved, ctx, payload) {
        events.started({ taskId: ctx.runId, taskType: resolved.taskType, attempt: ctx.tries })
        return perform({ handler: resolved, ctx, payload, clock })
      },
    })
    handlers.add(handler, (job) => durably.register({ job }).job)
  }

  async function enqueueMany(taskType: string, items: readonly EnqueueItem[]): Promise<EnqueuedTask[]> {
    const { handle } = handlers.get(taskType)
    power.requireOpen()
    // Whoever has a transaction open on the database has prepared it, and may hold its only connection.
    if (items.every(({ options: { transaction } = {} }) => transaction === undefined)) await power.prepared()
    const runs = await handle.batchTrigger(items.map(toTrigger))
    return runs.map((run) => ({ ...handlers.toTask(run), deduplicated: run.deduplicated }))
  }

  const pauseOrResume = (change: (jobName: string) => void) => (taskType?: string) => {
    for (const jobName of handlers.jobNames(taskType)) change(jobName)
  }

  const queue: TaskQueue = {
    ...createTaskAccess({ durably, handlers, prepared: () => power.prepared() }),
    register: register as TaskQueue['register'],
    async enqueue(taskType, payload, ...[taskOptions]) {
      const [task] = await enqueueMany(taskType, [{ payload, options: taskOptions }])
      return task as EnqueuedTask
    },
    enqueueMany,
    start: () => power.start(),
    stop: (stopOptions) => power.stop(stopOptions),
    pause: pauseOrResume((jobName) => durably.pauseJob(jobName)),
    resume: pauseOrResume((jobName) => durably.resumeJob(jobName)),
    async runUntilIdle(drainOptions) {
      await power.prepared()
      return durably.runUntilIdle(drainOptions)
    },
    async close() {
      await power.stop({ timeout: 0 })
      await durably.close()
    },
    on: (type, listener) => events.on(type, listener),
  }
  return queue as unknown as TaskQueue<TTasks>
}

function toTrigger({ payload, options = {} }: EnqueueItem) {
  const { dedupeKey, ...others } = options
  return { payload, options: { ...others, idempotencyKey: dedupeKey } }
}
