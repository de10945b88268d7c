import type { WorkerProcess } from './worker-process'

/** Somewhere between these parts of all steps, anew each time. */
const EARLIEST = 0.35
const LATEST = 0.6

export interface Kill {
  /** When the signal was sent; `null` before. */
  readonly sentAt: () => number | null
  /** Resolves when the process is gone. Awaited only after `sentAt` is set. */
  readonly done: () => Promise<void>
}

/** Kills a worker the moment it has begun a step in the middle of some `steps`; nothing in it gets to know. */
export function killInTheMiddle(worker: WorkerProcess, steps: number): Kill {
  const victim = Math.floor(steps * (EARLIEST + Math.random() * (LATEST - EARLIEST)))
  let begun = 0
  let sentAt: number | null = null
  let done = Promise.resolve()
  worker.onStep(() => {
    begun += 1
    if (begun !== victim) return
    sentAt = performance.now()
    done = worker.kill()
  })
  return { sentAt: () => sentAt, done: () => done }
}
