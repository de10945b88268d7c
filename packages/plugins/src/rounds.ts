import type { Clock, Durably } from '@coji/durably-core'
import { goRounds } from '@coji/durably-core/extend'

const SECOND_MS = 1000

/** Long enough for `migrate()` and for what the start of a process has to do first. */
const FIRST_AFTER_MS = 5 * SECOND_MS
const AFTER_TROUBLE_MS = 60 * SECOND_MS

interface RoundsParams {
  readonly durably: Durably
  /** For messages. */
  readonly name: string
  readonly every: number
  readonly clock: Pick<Clock, 'schedule'>
  /** Answers in how many milliseconds the next one is; ends early once `isStopped` says so. */
  round(isStopped: () => boolean): Promise<number>
}

/**
 * Something to do soon after the start and then every so often; what fails is reported, and tried again after a minute.
 * Returns how to stop it; that waits for the round in progress.
 */
export function goReportedRounds({ durably, name, every, clock, round }: RoundsParams): () => Promise<void> {
  let isStopped = false
  const stop = goRounds(clock, Math.min(FIRST_AFTER_MS, every), () =>
    round(() => isStopped).catch((error: unknown) => {
      durably.reportError(error, name)
      return Math.min(AFTER_TROUBLE_MS, every)
    }),
  )
  return () => {
    isStopped = true
    return stop()
  }
}
