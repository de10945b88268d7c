import type { Admission } from './admission'
import type { BodyScope } from './body-scope'
import {
  type Emitter,
  type EventInput,
  type EventType,
  type JobDeclaration,
  type JobDefinition,
  toTemplate,
} from '../job'
import { describeError, type Environment, type InterruptionReason, pause, StorageError, toInstant } from '../base'
import type { Plugins } from './hooks'
import type { EventTemplate, Storage } from '../port'

export interface EngineOptions {
  readonly workerId: string
  readonly concurrency: number
  readonly pollingIntervalMs: number
  readonly heartbeatIntervalMs: number
  /** What the application asked for, else what the plugins need. */
  leaseMs: number
  readonly maxCrashes: number
}

/** What the storage last failed at; `null` once it answered again. */
export interface Trouble {
  readonly during: string
  readonly error: string
  readonly at: string
}

/** What the parts of one instance share. */
export interface Engine {
  readonly storage: Storage
  readonly environment: Environment
  readonly options: EngineOptions
  readonly jobs: Map<string, JobDefinition>
  /** Jobs that this instance triggers and reads, and does not execute unless they are among `jobs` too. */
  readonly declared: Map<string, JobDeclaration>
  readonly admission: Admission
  readonly plugins: Plugins
  readonly events: Emitter
  readonly openTransactions: OpenTransactions
  readonly bodyScope: BodyScope
  /** Awaited between two pieces of work, so that the rest of the process gets its turn. */
  breathe(): Promise<void> | undefined
  /** Calls `giveUp` after so many milliseconds without an answer; returns how to call it off. */
  patience(ms: number, giveUp: () => void): () => void
  /** Tells `onError` and the logger; never throws. */
  reportError(error: unknown, during: string): void
  trouble: Trouble | null
  /** Jobs of which somebody was told that a run of theirs is parked. */
  readonly parkedJobs: Set<string>
}

/** For how long a run of the job is held after each sign of life. */
export function leaseMsOf({ jobs, options }: Engine, jobName: string): number {
  return Math.max(options.leaseMs, jobs.get(jobName)?.leaseMs ?? 0)
}

/** The templates of those events that a plugin wants kept. */
export function recorded(engine: Engine, ...events: readonly EventInput[]): readonly EventTemplate[] {
  const { plugins } = engine
  return events.filter((event) => plugins.recordsEvent(event.type)).map(toTemplate)
}

/** Whether anybody will see such an event. If not, it need not be put together. */
export function isWatched({ events, plugins }: Engine, type: EventType): boolean {
  return events.hears(type) || plugins.recordsEvent(type)
}

/** Trouble of the storage that the worker survives. */
export function reportTrouble(engine: Engine, thrown: unknown, during: string): void {
  engine.trouble = { during, error: describeError(thrown).message, at: toInstant(engine.environment.clock.now()) }
  announceTrouble(engine, thrown, during)
}

export function announceTrouble(engine: Engine, thrown: unknown, during: string): void {
  const { message: error, detail } = describeError(thrown)
  const { workerId } = engine.options
  engine.events.emit({ type: 'worker:error', workerId, during, error, code: detail.code ?? 'UNKNOWN' })
  engine.reportError(thrown, during)
}

/** What becomes of a call. One of them is called, once. */
export interface Heard<T> {
  readonly answer: (answer: T) => void
  readonly fail: (error: unknown) => void
}

/**
 * A call of the worker to its storage. One that never answers (a connection that is half open) would stop everything
 * behind it; after a third of the lease it counts as failed. All of these calls may be repeated, whatever became of them.
 */
export function askThen<T>(engine: Engine, call: (storage: Storage) => Promise<T>, { answer, fail }: Heard<T>): void {
  const patienceMs = Math.round(engine.options.leaseMs / 3)
  let isOpen = true
  const settle = () => {
    callOff()
    const isFirst = isOpen
    isOpen = false
    return isFirst
  }
  const callOff = engine.patience(patienceMs, () => {
    const silence = `The database did not answer within ${patienceMs} ms.`
    if (settle()) fail(new StorageError('STORAGE_UNAVAILABLE', silence))
  })
  const onAnswer = (given: T) => {
    if (!settle()) return
    engine.trouble = null
    answer(given)
  }
  const onFailure = (error: unknown) => {
    if (settle()) fail(error)
  }
  try {
    call(engine.storage).then(onAnswer, onFailure)
  } catch (error) {
    onFailure(error)
  }
}

export function ask<T>(engine: Engine, call: (storage: Storage) => Promise<T>): Promise<T> {
  return new Promise((answer, fail) => askThen(engine, call, { answer, fail }))
}

/** What may be told to end while it waits. */
interface Interruptible {
  reason(): InterruptionReason | null
  readonly expired: Promise<void>
  cause(): unknown
}

interface PatientCall<T> {
  readonly engine: Engine
  readonly interruption: Interruptible
  readonly during: string
  readonly call: (storage: Storage) => Promise<T>
}

/** For what an execution cannot go on without: asks until there is an answer, or the execution is over. */
export async function askPatiently<T>({ engine, interruption, during, call }: PatientCall<T>): Promise<T> {
  for (let tries = 1; interruption.reason() === null; tries++) {
    try {
      return await ask(engine, call)
    } catch (error) {
      reportTrouble(engine, error, during)
      await pauseAfterTrouble({ engine, interruption }, tries)
    }
  }
  throw interruption.cause()
}

/** Until something that the storage refused may be tried again, or the execution is over. */
export async function pauseAfterTrouble(
  { engine, interruption }: { readonly engine: Engine; readonly interruption: Pick<Interruptible, 'expired'> },
  tries: number,
): Promise<void> {
  await Promise.race([pause(engine.environment.clock, troubleDelayMs(engine, tries)), interruption.expired])
}

/** Milliseconds before try number `tries` (from 1) of something the storage refused: 50 ms to 5 s with jitter. */
export function troubleDelayMs(engine: Engine, tries: number): number {
  const ceiling = Math.min(50 * 2 ** Math.min(tries, 10), 5000)
  return Math.round(ceiling / 2 + (engine.environment.random() * ceiling) / 2)
}

/** What a worker is doing. */
export type WorkerState = 'stopped' | 'running' | 'stopping'

/** What is to be said once a transaction is committed: to the process that began it by `durably.transaction()`. */
export type OpenTransactions = WeakMap<object, (() => void)[]>
