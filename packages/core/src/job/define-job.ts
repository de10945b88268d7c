import type { RateLimit } from '../port'
import type { JobContext } from './context'
import { type ContinuationBy, requireContinuation } from './continuation'
import {
  type AnyOutput,
  DECLARATION_OPTIONS,
  type JobDeclaration,
  type JobDeclarationOptions,
  nameIn,
  toDeclaration,
} from './declare-job'
import { InvalidOptionError, type OptionNames, refuseUnknownOptions } from '../base'
import { type BatchOptions, type DebounceOptions, type Gathering, requireGathering } from './gathering'
import { type LimitScope, requireJobLimits } from './job-limits'
import { type MessageWish, type MessageWishes, requireWishes } from './message-wish'
import { type FailureHandler, requireFailureHandler } from './on-failure'
import { type JobPlacement, type PlacementBy, requirePlacement } from './placement'
import { requireRetryPolicy, type RetryPolicy } from './retry'
import type { StorableSchema } from './storable'

/** What `defineJob` takes beside the function. */
export interface JobOptions<TName extends string, TInput, TPayload>
  extends JobDeclarationOptions<TName, TInput, TPayload> {
  /** Starts a run again that failed; recorded steps stay. Default: never. */
  readonly retry?: RetryPolicy | undefined
  /** Runs of the job that one worker executes at a time, within its own `concurrency`. Default: no limit of its own. */
  readonly concurrency?: number | undefined
  /** Runs of the job that one worker begins in any `per` ms, those that go on after a wait or an error included. */
  readonly rateLimit?: RateLimit | undefined
  /**
   * For whom `concurrency` and `rateLimit` hold: `worker` (the default), each by itself; `database`, all workers that
   * share it together, whichever process they are in.
   */
  readonly scope?: LimitScope | undefined
  /**
   * Messages of which the job gets a run each, with their payload: `durably.publish()` sends them, `createInbox()` delivers
   * them.
   */
  readonly on?: MessageWishes | undefined
  /**
   * `leader`: the leader of a cluster finds a worker for each run, fairly between tenants (`createCluster()`). Where nobody
   * leads any worker claims them, as the runs of other jobs.
   */
  readonly placement?: PlacementBy | undefined
  /**
   * What its worker does with a run when it is cut off from the database. `abort`, the default: it ends it before its lease
   * is over. `confirm`: it goes on for longer, and meanwhile nobody takes the run from it; so a worker that is dead is
   * noticed as much later.
   */
  readonly continuation?: ContinuationBy | undefined
  /** Of messages: one run of the last one, so many milliseconds after it. */
  readonly debounce?: number | DebounceOptions | undefined
  /** Of messages: one run with the list of their payloads, when there are `max` or `within` milliseconds after the first. */
  readonly batch?: BatchOptions | undefined
  /**
   * The job of which a run is created, in the commit that ends a run of this one as failed or timed out, with a
   * `FailedRun` as its payload: for alerts, and for what has to be undone. Its own failures call nobody.
   */
  readonly onFailure?: FailureHandler | undefined
}

/** A job as a value: register it on any number of instances with `durably.register({ … })`. */
export interface JobDefinition<TName extends string = string, TInput = unknown, TOutput = unknown>
  extends JobDeclaration<TName, TInput, TOutput> {
  readonly retry: RetryPolicy | null
  readonly concurrency: number | null
  readonly rateLimit: RateLimit | null
  readonly scope: LimitScope
  readonly on: readonly MessageWish[]
  readonly gathering: Gathering | null
  readonly onFailure: JobDeclaration | null
  readonly placement: JobPlacement | null
  /** Of its runs, at least; 0: as all others. */
  readonly leaseMs: number
  readonly execute: (ctx: JobContext, payload: unknown) => unknown
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
  options: AnyOutput<JobOptions<string, unknown, unknown>>,
  execute: (ctx: JobContext, payload: unknown) => unknown,
): JobDefinition {
  refuseUnknownOptions(nameIn('defineJob()', options), options, JOB_OPTIONS)
  const declaration = toDeclaration(options)
  const what = `Job "${options.name}"`
  if (typeof execute !== 'function') throw new InvalidOptionError(`${what} needs a function.`)
  const { retry, concurrency, rateLimit, scope } = options
  return {
    ...declaration,
    retry: retry === undefined ? null : requireRetryPolicy(retry, what),
    ...requireJobLimits({ concurrency, rateLimit, scope }, what),
    on: requireWishes(options.on, what),
    gathering: requireGathering(options, what),
    onFailure: requireFailureHandler(options.onFailure, what),
    placement: placementOf(options, what),
    leaseMs: requireContinuation(options.continuation, what),
    execute,
  }
}

function placementOf(
  { placement, scope }: Pick<JobOptions<string, unknown, unknown>, 'placement' | 'scope'>,
  what: string,
) {
  if (placement === undefined || scope !== 'database') return requirePlacement(placement, what)
  throw new InvalidOptionError(
    `${what}: limits with scope 'database' are kept by claims, and a leader does not claim. Leave out placement or scope.`,
  )
}

const JOB_OPTIONS: OptionNames<AnyOutput<JobOptions<string, unknown, unknown>>> = {
  ...DECLARATION_OPTIONS,
  retry: true,
  concurrency: true,
  rateLimit: true,
  scope: true,
  placement: true,
  continuation: true,
  on: true,
  debounce: true,
  batch: true,
  onFailure: true,
}
