import {
  type Clock,
  InvalidOptionError,
  type OptionNames,
  refuseUnknownOptions,
  requireInteger,
  systemClock,
} from '../base'
import type { DurablyOptions } from '../engine'
import { requireRetryPolicy, type RetryPolicy } from '../job'
import { createMemoryStorage } from '../memory'
import type { Storage } from '../port'
import type { TaskLogger } from './task-events'

/** How many ended tasks of a state are kept, and for how long. What exceeds either goes. */
export interface KeepLimits {
  /** Milliseconds after the end. */
  readonly age?: number | undefined
  /** So many of the newest. */
  readonly count?: number | undefined
}

/** What `createTaskQueue` takes. */
export interface TaskQueueOptions extends Omit<DurablyOptions, 'storage' | 'logger'> {
  /** Where tasks are. Default: the memory of this process. */
  readonly storage?: Storage | undefined
  /**
   * How often a task is executed before it is dead, and when a failed one is tried again: the policy of jobs. Executions
   * that ended with their worker always count. Default: `{ maxAttempts: 5 }`, at random up to 1 s, 2 s, 4 s … 60 s.
   */
  readonly retry?: RetryPolicy | undefined
  /** Default: succeeded tasks for an hour, 1,000 at most; dead ones for a week, 10,000 at most. */
  readonly keep?: { readonly succeeded?: KeepLimits | undefined; readonly dead?: KeepLimits | undefined } | undefined
  /** Gets one line for each event, and those of handlers. `console` fits. Default: none, and errors go to `console`. */
  readonly logger?: TaskLogger | null | undefined
}

export type Keep = Readonly<Record<'succeeded' | 'dead', Readonly<Required<{ age: number; count: number }>>>>

export interface ResolvedOptions {
  readonly engine: DurablyOptions
  readonly clock: Clock
  readonly retry: RetryPolicy
  readonly keep: Keep
  readonly logger: TaskLogger | null
}

const HOUR_MS = 3_600_000
const DEFAULT_MAX_CRASHES = 5
const DEFAULT_KEEP: Keep = {
  succeeded: { age: HOUR_MS, count: 1000 },
  dead: { age: 7 * 24 * HOUR_MS, count: 10_000 },
}

const OPTIONS: OptionNames<TaskQueueOptions> = {
  storage: true,
  retry: true,
  keep: true,
  logger: true,
  pollingInterval: true,
  heartbeatInterval: true,
  staleThreshold: true,
  concurrency: true,
  workerId: true,
  maxCrashes: true,
  environment: true,
}
const KEEP: OptionNames<NonNullable<TaskQueueOptions['keep']>> = { succeeded: true, dead: true }
const LIMITS: OptionNames<KeepLimits> = { age: true, count: true }

export function resolveOptions(options: TaskQueueOptions): ResolvedOptions {
  refuseUnknownOptions('createTaskQueue()', options, OPTIONS)
  const { storage, retry: policy = { maxAttempts: 5 }, keep = {}, logger, ...engine } = options
  const retry = requireTaskRetry(policy, 'createTaskQueue()')
  refuseUnknownOptions('keep', keep, KEEP)
  const clock = options.environment?.clock ?? systemClock
  return {
    engine: {
      ...engine,
      // Of crashes in a row nobody should give a task up before it had its attempts.
      maxCrashes: options.maxCrashes ?? Math.max(DEFAULT_MAX_CRASHES, retry.maxAttempts),
      // What is kept is decided here.
      storage: storage ?? createMemoryStorage({ now: () => clock.now(), keepEnded: Number.POSITIVE_INFINITY }),
      ...(logger !== undefined && { logger }),
    },
    clock,
    retry,
    keep: { succeeded: resolveKeep('succeeded', keep.succeeded), dead: resolveKeep('dead', keep.dead) },
    logger: logger ?? null,
  }
}

/** A policy as jobs have it. What a lost worker was at counts, or a task that kills it would be tried for ever. */
export function requireTaskRetry(policy: RetryPolicy, what: string): RetryPolicy {
  requireRetryPolicy(policy, what)
  if (policy.countCrashes !== false) return { ...policy, countCrashes: true }
  throw new InvalidOptionError(`${what}: retry.countCrashes cannot be false for tasks; crashes count as attempts.`)
}

function resolveKeep(state: keyof Keep, given: KeepLimits = {}): Keep[keyof Keep] {
  refuseUnknownOptions(`keep.${state}`, given, LIMITS)
  const { age = DEFAULT_KEEP[state].age, count = DEFAULT_KEEP[state].count } = given
  if (!(typeof age === 'number' && age >= 0))
    throw new InvalidOptionError(`keep.${state}.age must be milliseconds from 0, not ${String(age)}.`)
  if (count !== Number.POSITIVE_INFINITY) requireInteger(`keep.${state}.count`, count, { from: 0 })
  return { age, count }
}
