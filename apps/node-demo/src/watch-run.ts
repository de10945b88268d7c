import { setTimeout as pause } from 'node:timers/promises'
import type { CompletedRun, Run } from '@coji/durably'
import type { Screen } from './screen'
import type { WorkerProcess } from './worker-process'

const LOOK_EVERY_MS = 40

export interface WatchRunParams<TOutput> {
  readonly label: string
  readonly getRun: () => Promise<Run<TOutput> | null>
  readonly worker: WorkerProcess
  readonly screen: Screen
  readonly signal: AbortSignal
  /** Stop looking when this says so. */
  readonly until?: () => boolean
}

/** Shows what the database says about a run, until it is completed (the run) or `until` says stop (`null`). */
export async function watchRun<TOutput>(params: WatchRunParams<TOutput>): Promise<CompletedRun<TOutput> | null> {
  const { label, worker, screen, signal } = params
  for (;;) {
    const run = await params.getRun()
    if (run === null) throw new Error(`The run of ${label} is gone.`)
    show(screen, label, run)
    if (run.status === 'completed') return run
    if (run.error !== null) throw new Error(`${label} is ${run.status}: ${run.error}`)
    if (params.until?.() === true) return null
    worker.check()
    await pause(LOOK_EVERY_MS, undefined, { signal })
  }
}

function show(screen: Screen, label: string, run: Run): void {
  const { current = 0, total = 1, message = '' } = run.progress ?? {}
  screen.progress({ label, fraction: run.status === 'completed' ? 1 : current / total, message })
}
