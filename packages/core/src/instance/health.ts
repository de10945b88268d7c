import type { Engine, Trouble, WorkerState } from '../engine'
import type { Worker } from '../worker'

/** What `durably.health()` answers, for probes. */
export interface Health {
  readonly workerId: string
  readonly worker: WorkerState
  /** Runs that it executes at a time. */
  readonly concurrency: number
  /** Runs in progress here. */
  readonly active: readonly string[]
  /** Jobs of which this instance takes no runs, by `pauseJob()`. */
  readonly paused: readonly string[]
  /** Events are stored, so that runs can be followed wherever they are executed: `withLogPersistence()` is used. */
  readonly history: boolean
  /** What the storage last failed at, until it answers again. */
  readonly trouble: Trouble | null
}

export function healthOf({ options, admission, plugins, trouble }: Engine, worker: Worker): Health {
  const { workerId, concurrency } = options
  const history = plugins.recordsEvents()
  const [active, paused] = [worker.activeRuns(), admission.paused()]
  return { workerId, worker: worker.state, concurrency, active, paused, history, trouble }
}
