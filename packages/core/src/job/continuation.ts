import { InvalidOptionError, type OptionNames, refuseUnknownOptions, requireDuration } from '../base'

/** How long a run goes on without news from the database. */
export interface ContinuationOptions {
  /** Milliseconds. While they are not over nobody takes the run from its worker. */
  readonly confirmFor: number
}

/** `abort`: as long as every lease. `confirm`: five minutes, or as long as it says. */
export type ContinuationBy = 'abort' | 'confirm' | ContinuationOptions

const CONFIRM_FOR_MS = 300_000

const OPTIONS: OptionNames<ContinuationOptions> = { confirmFor: true }

/** The lease that the job needs at least, in milliseconds; 0 where that of every job will do. */
export function requireContinuation(given: ContinuationBy = 'abort', what: string): number {
  if (given === 'abort') return 0
  if (given === 'confirm') return CONFIRM_FOR_MS
  if (typeof given !== 'object' || given === null) {
    throw new InvalidOptionError(
      `${what}: continuation must be 'abort', 'confirm' or { confirmFor }, not ${String(given)}.`,
    )
  }
  refuseUnknownOptions(`${what}: continuation`, given, OPTIONS)
  requireDuration(`${what}: continuation.confirmFor`, given.confirmFor)
  return given.confirmFor
}
