import type { Run } from '@coji/durably-core'
import { type ReadView, useRead, useRunStore } from '@coji/durably-react'
import type { WorkerList } from '@coji/durably-server/client'
import { useEffect } from 'react'
import { type DashboardApi, useViewer } from '../api'

/** Runs that change tell of themselves. Workers do so in the database alone, some times a minute. */
const EVERY_MS = 3000
/** Newest first; how many they hold in all the workers say themselves. */
const RUNS_SHOWN = 200

interface Seen extends WorkerList {
  /** Some of the runs that a worker executes, by its id. */
  readonly runs: ReadonlyMap<string, readonly Run[]>
}

/** The workers as they are now, while they are looked at. */
export function useWorkers(): ReadView<Seen> {
  const { api } = useViewer()
  const store = useRunStore()
  useEffect(() => {
    const timer = setInterval(() => store.refresh(), EVERY_MS)
    return () => clearInterval(timer)
  }, [store])
  return useRead('workers', () => look(api))
}

async function look(api: DashboardApi): Promise<Seen> {
  const [list, running] = await Promise.all([
    api.workers(),
    api.getRuns({ status: ['running', 'assigned'], limit: RUNS_SHOWN }),
  ])
  const runs = new Map<string, Run[]>()
  for (const run of running) if (run.ownerId !== null) runs.set(run.ownerId, [...(runs.get(run.ownerId) ?? []), run])
  return { ...list, runs }
}
