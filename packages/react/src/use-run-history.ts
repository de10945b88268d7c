import type { Log, StoredEvent } from '@coji/durably-core'
import { useMemo } from 'react'
import { type ListView, NOT_READ_YET, NOTHING_TO_READ } from './growing-list'
import type { Observed } from './observed'
import { useRunStore } from './provider'
import type { RunStore } from './run-store'
import { fixed, useObserved } from './use-observed'

/** What a run has logged. */
export interface RunLogs extends Omit<ListView<Log>, 'items'> {
  /** In the order in which they were written. */
  readonly logs: readonly Log[]
}

/** What happened to a run. */
export interface RunEvents extends Omit<ListView<StoredEvent>, 'items'> {
  /** In their order. */
  readonly events: readonly StoredEvent[]
}

/** What a run has logged, live. Of no run while `id` is `null`. */
export function useRunLogs(id: string | null | undefined): RunLogs {
  const { items, isLoading, trouble } = useList(id, logsOf)
  return useMemo(() => ({ logs: items, isLoading, trouble }), [items, isLoading, trouble])
}

/** The stored events of a run, live. Of no run while `id` is `null`. */
export function useRunEvents(id: string | null | undefined): RunEvents {
  const { items, isLoading, trouble } = useList(id, eventsOf)
  return useMemo(() => ({ events: items, isLoading, trouble }), [items, isLoading, trouble])
}

const logsOf = (store: RunStore, id: string) => store.logs(id)
const eventsOf = (store: RunStore, id: string) => store.events(id)

function useList<T>(id: string | null | undefined, listOf: (store: RunStore, id: string) => Observed<ListView<T>>) {
  const store = useRunStore()
  const observed = useMemo<Observed<ListView<T>>>(
    () => (id == null ? fixed(NOTHING_TO_READ) : listOf(store, id)),
    [store, id, listOf],
  )
  return useObserved<ListView<T>>(observed, id == null ? NOTHING_TO_READ : NOT_READ_YET)
}
