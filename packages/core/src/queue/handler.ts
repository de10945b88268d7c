import {
  InvalidOptionError,
  type OptionNames,
  refuseMisspelledOptions,
  refuseUnknownOptions,
  requireDuration,
  type StandardSchema,
  type Clock,
  inTimeWithSignal,
  TimeoutError,
} from '../base'
import {
  declareJob,
  defineJob,
  type JobDeclaration,
  type JobDefinition,
  type JobOptions,
  type RetryPolicy,
  type StepLog,
  type StorableSchema,
  type PlainAttempt,
} from '../job'
import { asPlain } from '../worker'
import { requireTaskRetry } from './options'
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
  extends Pick<JobOptions<string, TInput, TPayload>, 'concurrency' | 'rateLimit' | 'scope'> {
  /** Any Standard Schema. `enqueue` refuses what it refuses; the handler gets what it parsed. */
  readonly schema?: StorableSchema<TInput, TPayload> | undefined
  /** Milliseconds after which an attempt is given up, whether its handler has settled or not. Default: never. */
  readonly timeout?: number | undefined
  /** Default: the queue's. */
  readonly retry?: RetryPolicy | undefined
}

/** What is known of a type by a queue that only enqueues its tasks and reads them. */
export interface TaskDeclaration<TInput = unknown> {
  /** Any Standard Schema. `enqueue` refuses what it refuses, and stores what it parsed. */
  readonly schema?: StandardSchema<TInput, unknown> | undefined
  /** As that of the handler: its `maxAttempts` is what tasks of the type show. Default: the queue's. */
  readonly retry?: RetryPolicy | undefined
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
  /** The policy of the queue. */
  readonly retry: RetryPolicy
  readonly runAttempt: (handler: ResolvedHandler, attempt: PlainAttempt, payload: unknown) => unknown
  /** A task of it is done, and that is stored. */
  readonly succeeded: (taskId: string) => void
  readonly givenUp: (taskId: string) => void
}

export function resolveHandler({
  handler,
  retry: ofQueue,
  runAttempt,
  succeeded,
  givenUp,
}: ResolveHandlerParams): ResolvedHandler {
  const { taskType, schema = ANYTHING, timeout, concurrency, rateLimit, scope } = requireHandler(handler)
  const retry = handler.retry === undefined ? ofQueue : requireTaskRetry(handler.retry, `The handler of "${taskType}"`)
  const job = defineJob(
    {
      name: jobNameOf(taskType),
      input: schema,
      retry,
      concurrency,
      rateLimit,
      scope,
    },
    () => {},
  )
  const begin = (attempt: PlainAttempt, payload: unknown) => runAttempt(resolved, attempt, payload)
  const resolved: ResolvedHandler = {
    taskType,
    timeoutMs: timeout ?? null,
    maxAttempts: retry.maxAttempts,
    execute: (payload, ctx) => handler.execute(payload, ctx),
    job: asPlain(job, { begin, succeeded, givenUp }),
  }
  return resolved
}

/** A handler, from any of the forms in which `register` takes it: whole, or by type and body, with options between them. */
export function toHandler(
  first: TaskHandler | string,
  second?: TaskOptions | TaskBody<unknown>,
  third?: TaskBody<unknown>,
): TaskHandler {
  if (typeof first !== 'string' || (second === undefined && third === undefined)) return wholeHandler(first)
  if (third === undefined) return { taskType: first, execute: second as TaskBody<unknown> }
  const options = second as TaskOptions
  refuseUnknownOptions(`The options of "${first}"`, options, OPTIONS)
  return { ...options, taskType: first, execute: third }
}

function wholeHandler(handler: TaskHandler | string): TaskHandler {
  if (typeof handler !== 'string') return handler
  throw new InvalidOptionError(`The handler of "${handler}" needs a function execute(payload, ctx).`)
}

const OPTIONS: OptionNames<TaskOptions> = {
  schema: true,
  timeout: true,
  retry: true,
  concurrency: true,
  rateLimit: true,
  scope: true,
}
const HANDLER: OptionNames<TaskHandler> = { ...OPTIONS, taskType: true, execute: true }
const DECLARATION: OptionNames<TaskDeclaration> = { schema: true, retry: true }

/** A type without a handler. */
export interface DeclaredType {
  readonly maxAttempts: number
  readonly job: JobDeclaration
}

export function resolveDeclaration(taskType: string, options: TaskDeclaration, ofQueue: RetryPolicy): DeclaredType {
  requireType('declare()', taskType)
  const what = `declare("${taskType}")`
  refuseUnknownOptions(what, options, DECLARATION)
  const { schema = ANYTHING, retry } = options
  const { maxAttempts } = retry === undefined ? ofQueue : requireTaskRetry(retry, what)
  return { maxAttempts, job: declareJob({ name: jobNameOf(taskType), input: schema }) }
}

function requireType(call: string, taskType: unknown): void {
  if (typeof taskType === 'string' && taskType !== '') return
  throw new InvalidOptionError(`${call} needs a task type that is not empty.`)
}

function requireHandler(handler: TaskHandler): TaskHandler {
  const { taskType, execute, timeout } = handler ?? {}
  requireType('register()', taskType)
  if (typeof execute !== 'function') {
    throw new InvalidOptionError(`The handler of "${taskType}" needs a function execute(payload, ctx).`)
  }
  refuseUnknownData(`The handler of "${taskType}"`, handler)
  if (timeout !== undefined) requireDuration(`The timeout of "${taskType}"`, timeout)
  return handler
}

/** Where others, and queues before this one, have the number of tries. */
const TRIES = ['maxAttempts', 'retries']

/** An object with an execute() may have methods of its own, and an instance of a class what these need. */
function refuseUnknownData(what: string, handler: TaskHandler): void {
  const data = Object.fromEntries(Object.entries(handler).filter(([, value]) => typeof value !== 'function'))
  const misplaced = TRIES.find((name) => Object.hasOwn(data, name))
  if (misplaced !== undefined) {
    throw new InvalidOptionError(`${what} takes no "${misplaced}": give it retry: { maxAttempts }.`)
  }
  if (isLiteral(handler)) refuseUnknownOptions(what, data, HANDLER)
  else refuseMisspelledOptions(what, handler, HANDLER)
}

/** No instance of a class, and no module. */
function isLiteral(given: object): boolean {
  const prototype = Object.getPrototypeOf(given)
  const isPlain = prototype === null || Object.getPrototypeOf(prototype) === null
  return isPlain && !(Symbol.toStringTag in given)
}

/** For types without a schema: what JSON can carry. */
const ANYTHING: StandardSchema = {
  '~standard': { version: 1, vendor: 'durably', validate: (value) => ({ value }) },
}

export interface AttemptParams {
  readonly handler: ResolvedHandler
  readonly attempt: PlainAttempt
  readonly payload: unknown
  readonly clock: Clock
}

/** One attempt. It is over when the handler has settled or its time is up; one that goes on is not heard any more. */
export function runAttempt({ handler, attempt, payload, clock }: AttemptParams): unknown {
  const { taskType, timeoutMs } = handler
  if (timeoutMs === null) return handler.execute(payload, new AttemptContext(handler, attempt, null))
  const error = () => new TimeoutError(`The task "${taskType}" took longer than ${timeoutMs} ms.`)
  return inTimeWithSignal({ clock, ms: timeoutMs, error }, attempt.signal, ({ signal }) =>
    handler.execute(payload, new AttemptContext(handler, attempt, signal)),
  )
}

/** Signal and log are made for who asks for them: most handlers do not. */
class AttemptContext implements TaskContext {
  readonly taskId: string
  readonly taskType: string
  readonly attempt: number
  readonly maxAttempts: number
  readonly #attempt: PlainAttempt
  readonly #signal: AbortSignal | null

  constructor({ taskType, maxAttempts }: ResolvedHandler, attempt: PlainAttempt, signal: AbortSignal | null) {
    this.taskId = attempt.runId
    this.taskType = taskType
    this.attempt = attempt.tries
    this.maxAttempts = maxAttempts
    this.#attempt = attempt
    this.#signal = signal
  }

  get signal(): AbortSignal {
    return this.#signal ?? this.#attempt.signal
  }

  get log(): TaskContext['log'] {
    return this.#attempt.log
  }
}
