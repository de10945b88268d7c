import type { Clock, Durably } from '@coji/durably-core'

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
  /** Ends early once `isStopped` says so. */
  round(isStopped: () => boolean): Promise<unknown>
}

/**
 * Something to do soon after the start and then every so often; what fails is reported, and tried again after a minute.
 * Returns how to stop it; that waits for the round in progress.
 */
export function goRounds({ durably, name, every, clock, round }: RoundsParams): () => Promise<void> {
  let isOver = false
  let going = Promise.resolve()
  let callOff = clock.schedule(Math.min(FIRST_AFTER_MS, every), go)

  function go(): void {
    going = round(() => isOver)
      .then(
        () => every,
        (error: unknown) => {
          durably.reportError(error, name)
          return Math.min(AFTER_TROUBLE_MS, every)
        },
      )
      .then((waitMs) => {
        if (!isOver) callOff = clock.schedule(waitMs, go)
      })
  }

  return () => {
    isOver = true
    callOff()
    return going
  }
}
