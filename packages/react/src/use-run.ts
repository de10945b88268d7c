import type { Run } from '@coji/durably-core'
import { useMemo } from 'react'
import type { Observed } from './observed'
import { useRunStore } from './provider'
import { LOADING, NO_RUN, type RunView, viewOf } from './run-view'
import { fixed, useObserved } from './use-observed'

/** What the page can start with. */
export interface UseRunOptions<TOutput> {
  /** The run as a server has read it: shown at once, until it has been read here. */
  readonly initial?: Run<TOutput> | null | undefined
}

/** What can be done to the run. Each rejects if it is refused. */
export interface RunActions {
  cancel(): Promise<void>
  retry(): Promise<void>
  signal(name: string, payload?: unknown): Promise<void>
  deleteRun(): Promise<void>
}

/** A run as it is known, and what can be done to it. */
export type UsedRun<TOutput = unknown> = RunView<TOutput> & RunActions

/** A run, live: its status, progress, steps, streamed text and result. Of no run while `id` is `null`. */
export function useRun<TOutput = unknown>(
  id: string | null | undefined,
  { initial }: UseRunOptions<TOutput> = {},
): UsedRun<TOutput> {
  const store = useRunStore()
  const observed = useMemo<Observed<RunView>>(() => (id == null ? fixed(NO_RUN) : store.run(id)), [store, id])
  const first = useMemo<RunView>(() => {
    if (id == null) return NO_RUN
    return initial?.id === id ? viewOf(initial) : LOADING
  }, [id, initial])
  const known = useObserved(observed, first)
  const view = known === LOADING ? first : known
  return useMemo(() => {
    const needed = () => {
      if (id == null) throw new Error('useRun() was given no run.')
      return id
    }
    return {
      ...(view as RunView<TOutput>),
      cancel: async () => store.cancel(needed()),
      retry: async () => store.retry(needed()),
      signal: async (name: string, payload?: unknown) => store.signal(needed(), name, payload),
      deleteRun: async () => store.deleteRun(needed()),
    }
  }, [store, id, view])
}
