import type { EventType } from '@coji/durably-core'
import type { RunEvent } from './live-run'
import type { RunApi } from './run-api'
import { delayAfter, isFinal, isWithoutHistory, toError } from './trouble'

export interface FollowParams {
  readonly api: RunApi
  readonly runId: string
  readonly signal: AbortSignal
  /** The number of the last event that was heard. */
  readonly heardUpTo: () => number
  readonly onEvent: (event: RunEvent) => void
  /** With how often it has failed in a row. */
  readonly onTrouble: (error: Error, failures: number) => void
}

/**
 * Hands on the stored events of a run and those that come, however often the connection is lost. Resolves when there will
 * be no more: with `false` if that is because none are kept.
 */
export async function followRun({ api, runId, signal, heardUpTo, onEvent, onTrouble }: FollowParams): Promise<boolean> {
  for (let failures = 0; ; ) {
    try {
      for await (const event of api.subscribe(runId, { after: heardUpTo(), signal })) {
        failures = 0
        onEvent(event)
      }
      return true
    } catch (error) {
      if (signal.aborted) return true
      if (isFinal(error)) return !isWithoutHistory(error)
      failures += 1
      onTrouble(toError(error), failures)
      await pause(delayAfter(failures), signal)
    }
  }
}

/** Resolves early when the signal aborts. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    signal.addEventListener('abort', end)
  })
}

const TOLD_BY_AN_INSTANCE = [
  ...(['step:start', 'step:complete', 'step:fail', 'step:chunk', 'step:restart', 'log:write'] as const),
  ...(['run:start', 'run:suspend', 'run:park', 'run:release', 'run:recover', 'run:retry', 'run:progress'] as const),
] as const satisfies readonly EventType[]

/** Without a history: what the instance itself tells from now on. */
export function hearInstance(api: RunApi, runId: string, onEvent: (event: RunEvent) => void): () => void {
  const { on } = api
  if (on === undefined) return () => {}
  const offs = TOLD_BY_AN_INSTANCE.map((type) => on(type, (event) => event.runId === runId && onEvent(event)))
  return () => {
    for (const off of offs) off()
  }
}
