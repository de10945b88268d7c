import type { Clock } from '../../base'
import { createTaskQueue, type EndedTaskState, type TaskQueue } from '../../queue/index'
import type { RunCommit, Storage } from '../../port'
import { createMortal, type Done, type LastCall } from './mortal-storage'

/** A queue object, and all that its process does for it. */
export interface QueueProcess {
  readonly number: number
  readonly queue: TaskQueue
  readonly clock: Clock
  readonly concurrency: number
  readonly paused: Set<string>
  /** When it began tasks of each type. */
  readonly starts: Map<string, number[]>
  isAlive: boolean
  /** It will make a last call. */
  isDoomed: boolean
  /** It has made its last call; what was answered before goes on until the event loop turns. */
  isDying: boolean
  /** Whether it takes tasks, and since when. */
  isStarted: boolean
  startedAt: number
  /** `runUntilIdle` is under way. */
  isDraining: boolean
  /** Calls of it that have not come back, also after a `stop()`. */
  drains: number
  /** When its budget is over: nothing begins then. */
  budgetUntil: number
  /** When it has to be done at the latest. */
  drainedBy: number
  /** `enqueue` refuses. */
  isStopped: boolean
  /** Each `stop()` with a time-out, and each budget: from when on what was begun before is given back. */
  readonly stops: { readonly begunBefore: number; readonly from: number }[]
  /** Dies at a later call of its worker to the storage; `null` calls that off. */
  dieAt(call: LastCall | null): void
  kill(): void
}

/** What all queue objects of a story have in common. */
export interface QueueSettings {
  readonly leaseMs: number
  readonly maxCrashes: number
  readonly keep: Readonly<Record<EndedTaskState, { readonly age: number; readonly count: number }>>
}

export interface OpenQueueParams {
  readonly number: number
  readonly concurrency: number
  readonly storage: Storage
  readonly clock: Clock
  readonly settings: QueueSettings
  readonly random: () => number
  readonly createId: () => string
  /** Puts something around the queue: a fault that should be found. */
  readonly wrap: (queue: TaskQueue) => TaskQueue
  /** Trouble that the queue reports. */
  readonly onTrouble: (message: string) => void
  /** It has made its last call. */
  readonly onDeath: (process: QueueProcess) => void
  /** It would have sent these. */
  readonly onUnsent: (process: QueueProcess, commits: readonly RunCommit[]) => void
  /** What it called for was done, and it was dead by then. */
  readonly onUnheard: (process: QueueProcess, done: Done) => void
}

export function openQueue(params: OpenQueueParams): QueueProcess {
  const { number, concurrency, settings, random, createId } = params
  const mortal = createMortal({
    inner: params.storage,
    onDeath() {
      process.isDying = true
      params.onDeath(process)
    },
    onUnsent: (commits) => params.onUnsent(process, commits),
    onUnheard: (done) => params.onUnheard(process, done),
  })
  const clock = createMortalClock(params.clock, () => process.isAlive && !process.isDying)
  const queue = createTaskQueue({
    storage: mortal.storage,
    concurrency,
    keep: settings.keep,
    maxCrashes: settings.maxCrashes,
    staleThreshold: settings.leaseMs,
    heartbeatInterval: settings.leaseMs / 4,
    pollingInterval: 2000,
    workerId: `w${number}`,
    environment: { clock, random, createId },
    logger: createAlarm(params.onTrouble),
  })
  const process: QueueProcess = {
    number,
    queue: params.wrap(queue),
    clock,
    concurrency,
    paused: new Set(),
    starts: new Map(),
    isAlive: true,
    isDoomed: false,
    isDying: false,
    isStarted: false,
    startedAt: 0,
    isStopped: false,
    isDraining: false,
    drains: 0,
    budgetUntil: Number.POSITIVE_INFINITY,
    drainedBy: Number.POSITIVE_INFINITY,
    stops: [],
    dieAt: mortal.dieAt,
    kill() {
      process.isAlive = false
      mortal.kill()
    },
  }
  return process
}

/** No timer of the dead fires. */
function createMortalClock(clock: Clock, isAlive: () => boolean): Clock {
  return {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    schedule: (ms, fn) =>
      clock.schedule(ms, () => {
        if (isAlive()) fn()
      }),
  }
}

/** Lines about tasks are said by events as well; what else is an error is not meant to happen. */
function createAlarm(onTrouble: (message: string) => void) {
  const sound = (message: string, details?: unknown) => {
    if (!message.startsWith('task ')) onTrouble(`${message} ${String(details)}`)
  }
  return { info() {}, warn() {}, error: sound }
}
