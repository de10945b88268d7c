import {
  createMemoryStorage,
  InvalidOptionError,
  systemClock,
  type Clock,
  type DurablyOptions,
  type RetryPolicy,
  type Storage,
} from '../index'
import type { TaskLogger } from './task-log'

/** When what failed is tried again: milliseconds, how they grow, or a function of the attempt (from 1) and its error. */
export type RetryDelay = NonNullable<RetryPolicy['delay']>

/** How many ended tasks of a state are kept, and for how long. What exceeds either goes. */
export interface KeepLimits {
  /** Milliseconds after the end. */
  readonly age?: number | undefined
  readonly count?: number | undefined
}

/** What `createTaskQueue` takes. */
export interface TaskQueueOptions extends Omit<DurablyOptions, 'storage' | 'logger'> {
  /** Where tasks are. Default: the memory of this process. */
  readonly storage?: Storage | undefined
  /** When a failed task is tried again. Default: growing, at random up to 1 s, 2 s, 4 s … 60 s. */
  readonly retry?: RetryDelay | undefined
  /** Executions of a task before it is dead, the first included. Default 5. */
  readonly maxAttempts?: number | undefined
  /** Default: succeeded tasks for an hour, 1,000 at most; dead ones for a week, 10,000 at most. */
  readonly keep?: { readonly succeeded?: KeepLimits | undefined; readonly dead?: KeepLimits | undefined } | undefined
  /** Gets one line for each event, and those of handlers. `console` fits. Default: none, and errors go to `console`. */
  readonly logger?: TaskLogger | null | undefined
}

export type Keep = Readonly<Record<'succeeded' | 'dead', Readonly<Required<{ age: number; count: number }>>>>

export interface ResolvedOptions {
  readonly engine: DurablyOptions
  readonly clock: Clock
  readonly retry: RetryDelay | undefined
  readonly maxAttempts: number
  readonly keep: Keep
  readonly logger: TaskLogger | null
}

const HOUR_MS = 3_600_000
const DEFAULT_MAX_CRASHES = 5
const DEFAULT_KEEP: Keep = {
  succeeded: { age: HOUR_MS, count: 1000 },
  dead: { age: 7 * 24 * HOUR_MS, count: 10_000 },
}

export function resolveOptions(options: TaskQueueOptions): ResolvedOptions {
  const { storage, retry, maxAttempts = 5, keep = {}, logger, ...engine } = options
  const clock = options.environment?.clock ?? systemClock
  return {
    engine: {
      ...engine,
      // Of crashes in a row nobody should give a task up before it had its attempts.
      maxCrashes: options.maxCrashes ?? Math.max(DEFAULT_MAX_CRASHES, maxAttempts),
      // What is kept is decided here.
      storage: storage ?? createMemoryStorage({ now: () => clock.now(), keepEnded: Number.POSITIVE_INFINITY }),
      ...(logger !== undefined && { logger }),
    },
    clock,
    retry,
    maxAttempts,
    keep: { succeeded: resolveKeep('succeeded', keep.succeeded), dead: resolveKeep('dead', keep.dead) },
    logger: logger ?? null,
  }
}

function resolveKeep(state: keyof Keep, given: KeepLimits = {}): Keep[keyof Keep] {
  const { age = DEFAULT_KEEP[state].age, count = DEFAULT_KEEP[state].count } = given
  if (!(age >= 0)) throw new InvalidOptionError(`keep.${state}.age must be milliseconds from 0, not ${age}.`)
  const isCount = count === Number.POSITIVE_INFINITY || (Number.isSafeInteger(count) && count >= 0)
  if (!isCount) throw new InvalidOptionError(`keep.${state}.count must be an integer from 0, not ${count}.`)
  return { age, count }
}
