import {
  brandOf,
  CrashLimitError,
  InvalidOptionError,
  LONGEST_DELAY_MS,
  onRejection,
  type OptionNames,
  PermanentError,
  refuseUnknownOptions,
  requireBoolean,
  requireInteger,
  RetryAfterError,
} from '../base'
import type { RunRecord } from '../port'

/** When what failed is tried again. Without a policy it is not. */
export interface RetryPolicy {
  /** Tries in all, the first one included. */
  readonly maxAttempts: number
  /**
   * Milliseconds until the next try: always the same, growing, or what a function says of the try that failed (the
   * first is 1) and its error; `null` from it is never again. Default: growing, with its defaults.
   */
  readonly delay?: number | GrowingDelay | ((attempt: number, error: unknown) => number | null) | undefined
  /**
   * Of jobs only: an execution that ended with its worker counts as a try as well, until a step is recorded. A run whose
   * last try ended so fails with the code `crash_limit`. Default: only `maxCrashes` of the instance ends it.
   */
  readonly countCrashes?: boolean | undefined
}

/** Anything from nothing to `from` after the first failure, to `from * factor` after the second, and so on. */
export interface GrowingDelay {
  /** Milliseconds. Default 1000. */
  readonly from?: number | undefined
  /** Default 2. */
  readonly factor?: number | undefined
  /** Milliseconds that no wait is longer than. Default 60000. */
  readonly upTo?: number | undefined
}

/** The tries of a run since its trigger or its retry by hand, this one included. */
export function triesOf(run: Pick<RunRecord, 'attempt' | 'attemptBase' | 'crashCount'>, countCrashes: boolean): number {
  return run.attempt - run.attemptBase + (countCrashes ? run.crashCount : 0)
}

/** Throws when a run was begun as often as it may be: then it was a lost worker that ended its last try. */
export function refuseSpent(policy: RetryPolicy | null, run: RunRecord, maxCrashes: number): void {
  // Who found it lost does not know its job, or what a failure of it calls.
  if (run.crashCount >= maxCrashes) throw new CrashLimitError(lostTooOften(run.crashCount))
  if (policy?.countCrashes !== true || triesOf(run, true) <= policy.maxAttempts) return
  // It failed under a policy that would have let it try again.
  if (run.crashCount === 0) throw new PermanentError(run.error ?? 'No try is left.')
  const tries = triesOf(run, true) - 1
  const lost = `${times(run.crashCount)} its worker was lost`
  throw new CrashLimitError(`The run was begun ${times(tries)}, and ${lost}. No try is left.`)
}

/** What is recorded of a run whose workers were lost so often in a row. */
export function lostTooOften(crashes: number): string {
  return (
    `The run lost its worker ${times(crashes)}${crashes === 1 ? '' : ' in a row'} without completing a step or ` +
    'saving a new checkpoint. Find out what its next step does to the process, then retry it.'
  )
}

function times(count: number): string {
  return `${count} ${count === 1 ? 'time' : 'times'}`
}

export interface FailedTry {
  readonly policy: RetryPolicy | null
  /** Which try it was, from 1. */
  readonly attempt: number
  readonly error: unknown
  /** From 0 up to 1. */
  readonly random: () => number
}

/** Milliseconds until the next try; `null` when there is none. */
export function retryDelayMs(failed: FailedTry): number | null {
  const { policy, attempt, error } = failed
  if (policy === null || attempt >= policy.maxAttempts || brandOf(error)?.isPermanent === true) return null
  const delayMs = error instanceof RetryAfterError ? error.retryAfterMs : delayOf(policy, failed)
  return delayMs === null ? null : Math.min(delayMs, LONGEST_DELAY_MS)
}

function delayOf({ delay = {} }: RetryPolicy, { attempt, error, random }: FailedTry): number | null {
  if (typeof delay === 'number') return delay
  if (typeof delay === 'function') return askedDelay(delay(attempt, error))
  const { from = 1000, factor = 2, upTo = 60_000 } = delay
  return Math.round(random() * Math.min(upTo, from * factor ** (attempt - 1)))
}

const RETRY_POLICY: OptionNames<RetryPolicy> = { maxAttempts: true, delay: true, countCrashes: true }
const GROWING_DELAY: OptionNames<GrowingDelay> = { from: true, factor: true, upTo: true }

/** The policy, checked where it is given: a mistake must not wait for the first failure. */
export function requireRetryPolicy(policy: RetryPolicy, what: string): RetryPolicy {
  refuseUnknownOptions(`${what}: retry`, policy, RETRY_POLICY)
  const { maxAttempts, delay, countCrashes } = policy
  requireInteger(`${what}: retry.maxAttempts`, maxAttempts, { from: 1 })
  if (countCrashes !== undefined) requireBoolean(`${what}: retry.countCrashes`, countCrashes)
  if (typeof delay === 'function' || delay === undefined) return policy
  if (typeof delay !== 'number' && (typeof delay !== 'object' || delay === null)) {
    throw new InvalidOptionError(`${what}: retry.delay must be a number, an object or a function.`)
  }
  if (typeof delay === 'object') refuseUnknownOptions(`${what}: retry.delay`, delay, GROWING_DELAY)
  const times = typeof delay === 'number' ? { delay } : delay
  for (const [name, value] of Object.entries(times)) {
    if (value === undefined || (Number.isFinite(value) && value >= 0)) continue
    throw new InvalidOptionError(`${what}: ${name} of retry must be a number from 0, not ${String(value)}.`)
  }
  return policy
}

function askedDelay(answer: number | null): number | null {
  // An async one is refused whatever it comes to.
  onRejection(answer, () => {})
  if (answer === null || (typeof answer === 'number' && answer >= 0 && Number.isFinite(answer))) return answer
  throw new InvalidOptionError(`retry.delay() must return milliseconds from 0, or null, not ${String(answer)}.`)
}
