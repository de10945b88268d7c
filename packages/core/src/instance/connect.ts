import type { Engine } from '../engine'
import { ClosedError } from '../base'
import type { Migrating } from './migrating'
import { createRuns, enqueueRuns, type TailReader, type TriggerItem, type Waits } from '../client'
import type { Worker } from '../worker'
import type { EnqueueAnswer, NewRun } from '../port'

const ENDING_EVENTS = ['run:complete', 'run:fail', 'run:timeout', 'run:cancel', 'run:delete'] as const

/** What an instance is made of. */
export interface Parts {
  readonly engine: Engine
  readonly worker: Worker
  readonly waits: Waits
  readonly tails: TailReader
}

interface ConnectParams extends Parts {
  readonly migrating: Migrating
  isClosed(): boolean
}

/** Lets the parts hear of what happens to runs in this process, and through the storage in others. */
export function connect({ engine, worker, waits, tails, migrating, isClosed }: ConnectParams) {
  const { workerId } = engine.options
  let triggering = 0
  /** Something became due while a trigger of our own was under way, which may have been the trigger. */
  let isDueMeanwhile = false
  for (const type of ENDING_EVENTS) engine.events.watch(type, (runId) => waits.look(runId))
  const unwatch = engine.storage.watch?.subscribe((hint) => {
    if (hint.kind === 'run') tails.noteChanged(hint.runId)
    // Of runs in our own hands our own events tell.
    if (hint.kind === 'run' && waits.isFor(hint.runId) && !worker.holds(hint.runId)) waits.look(hint.runId)
    if (hint.kind === 'cancel' && worker.holds(hint.runId)) worker.lookAt(hint.runId)
    if (hint.kind !== 'runs' || (hint.workerId ?? workerId) !== workerId) return
    // A trigger of our own wakes the worker itself, once its event is out.
    if (triggering === 0 || hint.workerId !== undefined || hint.isFromElsewhere === true) worker.wake()
    else isDueMeanwhile = true
  })

  async function entering<T>(write: () => Promise<T>): Promise<T> {
    triggering += 1
    try {
      return await write()
    } catch (error) {
      // What became due meanwhile was of others.
      if (isDueMeanwhile) worker.wake()
      throw error
    } finally {
      triggering -= 1
      if (triggering === 0) isDueMeanwhile = false
    }
  }

  return {
    disconnect: () => unwatch?.(),
    async create(items: readonly TriggerItem[]): Promise<readonly EnqueueAnswer[]> {
      if (isClosed()) throw new ClosedError()
      // Nobody has looked at the options yet.
      const inTransaction = items.some(({ options }) => Object(options).transaction !== undefined)
      // What migrates may itself wait for the connection that a transaction has.
      if (migrating.underWay !== null && !inTransaction) await migrating.underWay
      const answers = await entering(() => createRuns(engine, items))
      // What is not committed yet cannot be found.
      if (!inTransaction)
        worker.wake(items.some(({ options }) => options.delay !== undefined || options.runAt !== undefined))
      return answers
    },
    async enqueue(runs: readonly NewRun[]): Promise<readonly EnqueueAnswer[]> {
      if (isClosed()) throw new ClosedError()
      if (migrating.underWay !== null) await migrating.underWay
      const answers = await entering(() => enqueueRuns(engine, runs, null))
      worker.wake(runs.some(({ start }) => !('afterMs' in start) || start.afterMs > 0))
      return answers
    },
  }
}
