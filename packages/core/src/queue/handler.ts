import {
  defineJob,
  InvalidOptionError,
  type JobContext,
  type JobDefinition,
  type JobOptions,
  type StandardSchema,
  type StorableSchema,
  type StepLog,
} from '../index'
import type { RetryDelay } from './options'
import { jobNameOf } from './task'

/** What a handler gets besides the payload. */
export interface TaskContext {
  readonly taskId: string
  readonly taskType: string
  /** 1 at first. */
  readonly attempt: number
  readonly maxAttempts: number
  /** Aborts at the task's `timeout`, when its queue stops, and when this worker has lost the task. */
  readonly signal: AbortSignal
  /** Lines for the queue's logger, and for the history of the run if it has one. */
  readonly log: StepLog
}

/** How tasks of a type are checked, limited and retried. */
export interface TaskOptions<TInput = unknown, TPayload = TInput>
  extends Pick<JobOptions<string, TInput, TPayload>, 'concurrency' | 'rateLimit'> {
  /** Any Standard Schema. `enqueue` refuses what it refuses; the handler gets what it parsed. */
  readonly schema?: StorableSchema<TInput, TPayload> | undefined
  /** Milliseconds after which an attempt is given up, whether its handler has settled or not. Default: never. */
  readonly timeout?: number | undefined
  /** Default: the queue's. */
  readonly retry?: RetryDelay | undefined
  /** Default: the queue's. */
  readonly maxAttempts?: number | undefined
}

/**
 * What is done for a task. It failed if this throws or rejects; what it returns is not kept. Written as a method, because
 * for a queue without a type map the payload is `unknown`, and a function that wants something narrower is right.
 */
export type TaskBody<TPayload> = { execute(payload: TPayload, ctx: TaskContext): unknown }['execute']

/** A handler as an object. */
export interface TaskHandler<TType extends string = string, TInput = unknown, TPayload = TInput>
  extends TaskOptions<TInput, TPayload> {
  readonly taskType: TType
  execute(payload: TPayload, ctx: TaskContext): unknown
}

/** A handler with everything decided. */
export interface ResolvedHandler {
  readonly taskType: string
  readonly timeoutMs: number | null
  readonly maxAttempts: number
  readonly execute: TaskBody<unknown>
  readonly job: JobDefinition
}

export interface ResolveHandlerParams {
  readonly handler: TaskHandler
  readonly defaults: { readonly retry: RetryDelay | undefined; readonly maxAttempts: number }
  readonly perform: (handler: ResolvedHandler, ctx: JobContext, payload: unknown) => Promise<void>
}

export function resolveHandler({ handler, defaults, perform }: ResolveHandlerParams): ResolvedHandler {
  const { taskType, schema = ANYTHING, timeout, concurrency, rateLimit } = requireHandler(handler)
  const { retry = defaults.retry, maxAttempts = defaults.maxAttempts } = handler
  const job = defineJob(
    {
      name: jobNameOf(taskType),
      input: schema,
      retry: { maxAttempts, delay: retry, countCrashes: true },
      concurrency,
      rateLimit,
    },
    (ctx, payload) => perform(resolved, ctx, payload),
  )
  const resolved: ResolvedHandler = {
    taskType,
    timeoutMs: timeout ?? null,
    maxAttempts,
    execute: (payload, ctx) => handler.execute(payload, ctx),
    job,
  }
  return resolved
}

/** What `register` takes. */
export type HandlerForm =
  | readonly [handler: TaskHandler | string]
  | readonly [taskType: string, execute: TaskBody<unknown>]
  | readonly [taskType: string, options: TaskOptions, execute: TaskBody<unknown>]

/** Each form as the first one. */
export function toHandler(form: HandlerForm): TaskHandler {
  switch (form.length) {
    case 1:
      if (typeof form[0] !== 'string') return form[0]
      throw new InvalidOptionError(`The handler of "${form[0]}" needs a function execute(payload, ctx).`)
    case 2:
      return { taskType: form[0], execute: form[1] }
    default:
      return { ...form[1], taskType: form[0], execute: form[2] }
  }
}

function requireHandler(handler: TaskHandler): TaskHandler {
  const { taskType, execute, timeout } = handler ?? {}
  if (typeof taskType !== 'string' || taskType === '') {
    throw new InvalidOptionError('register() needs a task type that is not empty.')
  }
  if (typeof execute !== 'function') {
    throw new InvalidOptionError(`The handler of "${taskType}" needs a function execute(payload, ctx).`)
  }
  if (timeout !== undefined && !(timeout > 0)) {
    throw new InvalidOptionError(`The timeout of "${taskType}" must be more than 0 ms, not ${timeout}.`)
  }
  return handler
}

/** For types without a schema: what JSON can carry. */
const ANYTHING: StandardSchema = {
  '~standard': { version: 1, vendor: 'durably', validate: (value) => ({ value }) },
}
