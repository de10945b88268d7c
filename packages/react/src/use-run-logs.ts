import { useMemo } from 'react'
import type { Observed } from './observed'
import { useRunStore } from './provider'
import { type LogsView, NO_LOGS, NO_LOGS_YET } from './run-logs'
import { fixed, useObserved } from './use-observed'

/** What a run has logged, live. Of no run while `id` is `null`. */
export function useRunLogs(id: string | null | undefined): LogsView {
  const store = useRunStore()
  const observed = useMemo<Observed<LogsView>>(() => (id == null ? fixed(NO_LOGS) : store.logs(id)), [store, id])
  return useObserved(observed, id == null ? NO_LOGS : NO_LOGS_YET)
}
