import { requireJobLimits } from './admission'
import type { JobContext } from './context'
import { InvalidOptionError, refuseBadText } from './errors'
import type { RateLimit } from './rate-window'
import { requireRetryPolicy, type RetryPolicy } from './retry'
import type { StandardSchema } from './schema'
import type { StorableSchema } from './storable'

/** What `defineJob` takes beside the function. */
export interface JobOptions<TName extends string, TInput, TPayload> {
  /** Unique on an instance, and the name under which runs are stored. */
  readonly name: TName
  /**
   * Any Standard Schema. `trigger` takes its input type; the job gets, and the database stores, what it parsed, which
   * therefore has to be JSON.
   */
  readonly input: StorableSchema<TInput, TPayload>
  /** Milliseconds from the first start to the end of the run, waits included. */
  readonly timeout?: number | undefined
  /** Starts a run again that failed; recorded steps stay. Default: never. */
  readonly retry?: RetryPolicy | undefined
  /** Runs of the job that one worker executes at a time, within its own `concurrency`. Default: no limit of its own. */
  readonly concurrency?: number | undefined
  /** Runs of the job that one worker begins in any `per` ms, those that go on after a wait or an error included. */
  readonly rateLimit?: RateLimit | undefined
  /** Recorded with each run, to tell runs of different code apart. */
  readonly version?: string | undefined
}

/** A job as a value: register it on any number of instances with `durably.register({ … })`. */
export interface JobDefinition<TName extends string = string, TInput = unknown, TOutput = unknown> {
  readonly name: TName
  readonly input: StandardSchema
  readonly output: StandardSchema | null
  readonly timeoutMs: number | null
  readonly retry: RetryPolicy | null
  readonly concurrency: number | null
  readonly rateLimit: RateLimit | null
  readonly version: string | null
  readonly execute: (ctx: JobContext, payload: unknown) => unknown
  /** Types only. */
  readonly types?: { readonly input: TInput; readonly output: TOutput }
}

/** Defines a job. It has no state and does nothing until an instance registers and triggers it. */
export function defineJob<TName extends string, TInput, TPayload, TReturned, TOutput>(
  options: JobOptions<TName, TInput, TPayload> & { readonly output: StorableSchema<TReturned, TOutput> },
  execute: (ctx: JobContext, payload: TPayload) => TReturned | Promise<TReturned>,
): JobDefinition<TName, TInput, TOutput>
export function defineJob<TName extends string, TInput, TPayload, TOutput>(
  options: JobOptions<TName, TInput, TPayload> & { readonly output?: undefined },
  execute: (ctx: JobContext, payload: TPayload) => TOutput | Promise<TOutput>,
): JobDefinition<TName, TInput, TOutput>
export function defineJob(
  options: JobOptions<string, unknown, unknown> & { readonly output?: StandardSchema | undefined },
  execute: (ctx: JobContext, payload: unknown) => unknown,
): JobDefinition {
  const { name, input, output, timeout, retry, concurrency, rateLimit, version } = options
  if (typeof name !== 'string' || name === '') throw new InvalidOptionError('A job needs a name that is not empty.')
  refuseBadText('The name of a job', name)
  refuseBadText(`The version of job "${name}"`, version)
  if (!isSchema(input)) {
    throw new InvalidOptionError(`Job "${name}" needs an input schema (Zod, Valibot, ArkType: any Standard Schema).`)
  }
  if (output !== undefined && !isSchema(output))
    throw new InvalidOptionError(`The output of job "${name}" is no schema.`)
  if (typeof execute !== 'function') throw new InvalidOptionError(`Job "${name}" needs a function.`)
  if (timeout !== undefined && !(timeout > 0 && Number.isFinite(timeout))) {
    throw new InvalidOptionError(`The timeout of job "${name}" must be more than 0 ms, not ${timeout}.`)
  }
  return {
    name,
    input,
    output: output ?? null,
    timeoutMs: timeout === undefined ? null : Math.ceil(timeout),
    retry: retry === undefined ? null : requireRetryPolicy(retry, `Job "${name}"`),
    ...requireJobLimits({ concurrency, rateLimit }, `Job "${name}"`),
    version: version ?? null,
    execute,
  }
}

function isSchema(schema: StandardSchema): boolean {
  return typeof schema?.['~standard']?.validate === 'function'
}
