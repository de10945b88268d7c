import { type OptionNames, refuseBadDuration, refuseUnknownOptions } from '../base'

const STOP_OPTIONS: OptionNames<StopOptions> = { timeout: true }

/** How `stop()` deals with runs in progress. */
export interface StopOptions {
  /** Milliseconds to wait for the runs in progress; then they are released for others. Without it, they are awaited. */
  readonly timeout?: number | undefined
}

/** Before anything stops. */
export function requireStopOptions(options: StopOptions): StopOptions {
  refuseUnknownOptions('stop()', options, STOP_OPTIONS)
  refuseBadDuration('timeout', options.timeout)
  return options
}
