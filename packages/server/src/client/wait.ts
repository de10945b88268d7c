import { type OptionNames, refuseBadDuration, refuseUnknownOptions } from '@coji/durably-core/extend'
import { CancelledError, DurablyError, isEnded, NotFoundError, RunFailedError, TimeoutError } from '@coji/durably-core'
import type { Run, RunOutput, RunReads, WaitOptions } from '@coji/durably-core'
import { isPassing } from './errors'
import { pause } from './pause'

/** Waiting for runs. */
export interface ClientWaits {
  /**
   * Waits for the end of a run. Rejects with `RunFailedError`, `CancelledError`, or `TimeoutError` after `timeout` ms of
   * waiting, when the run goes on. Once the run was seen, a server that is away for a while is waited for as well.
   */
  wait(id: string, options?: WaitOptions): Promise<RunOutput<unknown>>
}

const OPTIONS: OptionNames<WaitOptions> = { timeout: true, signal: true }

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 2000
const GROWTH = 1.5

export function createWaits({ getRun }: Pick<RunReads, 'getRun'>): ClientWaits {
  return {
    async wait(id, options = {}) {
      refuseUnknownOptions('wait()', options, OPTIONS)
      const { timeout, signal } = options
      refuseBadDuration('timeout', timeout)
      const deadline = timeout === undefined ? Number.POSITIVE_INFINITY : Date.now() + timeout
      let seen: Run | null = null
      for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * GROWTH, LONGEST_PAUSE_MS)) {
        signal?.throwIfAborted()
        const last: Run | null = seen
        seen = await getRun(id).catch((error: unknown): Run => {
          // What is none of ours comes of the headers.
          if (last !== null && (isPassing(error) || !(error instanceof DurablyError))) return last
          throw error
        })
        if (seen === null) throw NotFoundError.run(id)
        if (isEnded(seen.status)) return { id, output: outputOf(seen) }
        const leftMs = deadline - Date.now()
        if (leftMs <= 0) throw new TimeoutError(`Run ${id} did not end within ${timeout} ms. It goes on.`)
        await pause(Math.min(pauseMs, leftMs), signal)
      }
    },
  }
}

function outputOf(run: Run): unknown {
  if (run.status === 'completed') return run.output
  if (run.status === 'cancelled') throw new CancelledError(run.id)
  throw new RunFailedError(run)
}
