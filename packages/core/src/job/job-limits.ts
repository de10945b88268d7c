import { MOST_STARTS, type RateLimit } from '../port'
import type { JobDefinition } from './define-job'
import { InvalidOptionError, type OptionNames, refuseUnknownOptions, requireDuration, requireInteger } from '../base'

/** For whom limits hold: each worker by itself, or all that share the database together. */
export type LimitScope = 'worker' | 'database'

const RATE_LIMIT: OptionNames<RateLimit> = { max: true, per: true }

interface GivenLimits {
  readonly concurrency: number | undefined
  readonly rateLimit: RateLimit | undefined
  readonly scope: LimitScope | undefined
}

/** Checked where the job is defined: a mistake must not wait for the first run. */
export function requireJobLimits(
  { concurrency, rateLimit, scope = 'worker' }: GivenLimits,
  what: string,
): Pick<JobDefinition, 'concurrency' | 'rateLimit' | 'scope'> {
  if (concurrency !== undefined) requireInteger(`${what}: concurrency`, concurrency, { from: 1 })
  requireScope(scope, what)
  if (scope === 'database' && concurrency === undefined && rateLimit === undefined) {
    throw new InvalidOptionError(`${what}: scope 'database' needs a concurrency or a rateLimit to hold there.`)
  }
  return {
    concurrency: concurrency ?? null,
    rateLimit: rateLimit === undefined ? null : requireRate(rateLimit, scope, what),
    scope,
  }
}

export function requireScope(scope: unknown, what: string): asserts scope is LimitScope {
  if (scope === 'worker' || scope === 'database') return
  throw new InvalidOptionError(`${what}: scope must be 'worker' or 'database', not ${String(scope)}.`)
}

/** A century: databases count in years of four digits. */
const LONGEST_RATE_MS = 100 * 365.25 * 86_400_000

function requireRate(rateLimit: RateLimit, scope: LimitScope, what: string): RateLimit {
  if (typeof rateLimit !== 'object' || rateLimit === null) {
    throw new InvalidOptionError(`${what}: rateLimit must be { max, per }, runs and milliseconds.`)
  }
  refuseUnknownOptions(`${what}: rateLimit`, rateLimit, RATE_LIMIT)
  const { max, per } = rateLimit
  requireInteger(`${what}: rateLimit.max`, max, { from: 1 })
  requireDuration(`${what}: rateLimit.per`, per, Number.MAX_VALUE)
  if (scope === 'database' && max > MOST_STARTS) {
    throw new InvalidOptionError(
      `${what}: rateLimit.max is at most ${MOST_STARTS} with scope 'database', not ${max}. Make max and per smaller alike.`,
    )
  }
  if (scope === 'database' && per > LONGEST_RATE_MS) {
    throw new InvalidOptionError(`${what}: rateLimit.per must be less than 100 years with scope 'database'.`)
  }
  // A copy: who gave it may go on changing it.
  return { max, per }
}
