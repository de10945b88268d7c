import type { Run } from '@coji/durably-core'
import { useMemo } from 'react'
import { useRunStore } from './provider'
import type { RunListFilter } from './run-api'
import { NO_RUNS_YET, type RunListView } from './run-list'
import { useObserved } from './use-observed'

/** How long the list is, and what it starts with. */
export interface UseRunsOptions {
  /** So many runs at first, and so many more by each `showMore()`. Default 50. */
  readonly pageSize?: number | undefined
  /** The runs as a server has read them: shown at once, until they have been read here. */
  readonly initial?: readonly Run[] | undefined
}

/** A list of runs, and how to see more of it. */
export type UsedRuns = RunListView & {
  showMore(): void
}

/** The newest runs that the filter finds, live. */
export function useRuns(filter: RunListFilter = {}, { pageSize, initial }: UseRunsOptions = {}): UsedRuns {
  const store = useRunStore()
  const key = JSON.stringify(filter)
  // biome-ignore lint/correctness/useExhaustiveDependencies: filters are written in place, new at each render
  const list = useMemo(() => store.runs(filter, { pageSize }), [store, key, pageSize])
  const first = useMemo(
    () => (initial === undefined ? NO_RUNS_YET : { ...NO_RUNS_YET, runs: initial, isLoading: false }),
    [initial],
  )
  const known = useObserved(list, first)
  const view = known === NO_RUNS_YET ? first : known
  return useMemo(() => ({ ...view, showMore: list.showMore }), [view, list])
}
