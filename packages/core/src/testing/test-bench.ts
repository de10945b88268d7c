import { type DurablyEvent, EVENT_TYPES, type EventType, type JobContext, type Run, toRun } from '../job'
import { createDurably, type Durably } from '../instance'
import { type StandardSchema, StorageError } from '../base'
import type { JobHandle } from '../client'
import { createMemoryStorage, type MemoryStorage } from '../memory'
import type { DurablyOptions } from '../engine'
import type { Storage } from '../port'
import { createFakeClock, type FakeClock, settled } from './fake-clock'

/** Instances on one memory storage and one clock that stands still. */
export interface Bench {
  readonly clock: FakeClock
  readonly storage: MemoryStorage
  open(options?: Partial<DurablyOptions>): Durably
  /** Opens an instance with one job, starts it, triggers one run and lets everything happen that needs no time. */
  perform(execute: JobBody, options?: Partial<DurablyOptions>): Promise<Performed>
  close(): Promise<void>
}

export type JobBody = (ctx: JobContext) => unknown

export interface Performed {
  readonly durably: Durably
  readonly job: JobHandle
  /** As it was when nothing more happened without time passing. */
  readonly run: Run
  readonly events: readonly DurablyEvent[]
  /** The run as it is now. */
  now(): Promise<Run>
}

/** A schema that takes everything as it is. */
export const anything: StandardSchema = {
  '~standard': { version: 1, vendor: 'test-bench', validate: (value) => ({ value }) },
}

export function createBench(): Bench {
  const clock = createFakeClock()
  const storage = createMemoryStorage({ now: () => clock.now() })
  const opened: Durably[] = []

  function open(options: Partial<DurablyOptions> = {}): Durably {
    const environment = { clock, random: () => 0.5, ...options.environment }
    const durably = createDurably({ storage, logger: null, ...options, environment })
    opened.push(durably)
    return durably
  }

  return {
    clock,
    storage,
    open,
    async perform(execute, options = {}) {
      const durably = open(options)
      const events = recordEvents(durably)
      const job = durably.defineJob({ name: 'job', input: anything }, execute)
      durably.start()
      await settled()
      const { id } = await job.trigger({})
      await settled()
      // Read past the instance: it may be dead or cut off by now.
      const now = async () => toRun(found(await storage.getRun(id)))
      return { durably, job, run: await now(), events, now }
    },
    async close() {
      const closing = Promise.allSettled(opened.splice(0).map((durably) => durably.close()))
      await clock.advance(30_000)
      await closing
    },
  }
}

/** What the instance says from now on, in its order. */
export function recordEvents<T extends EventType = EventType>(
  durably: Durably,
  types: readonly T[] = EVENT_TYPES as readonly T[],
): DurablyEvent<T>[] {
  const events: DurablyEvent<T>[] = []
  for (const type of types) durably.on(type, (event) => events.push(event))
  return events
}

export function found<T>(value: T | null | undefined): T {
  if (value === null || value === undefined) throw new Error('Nothing was found.')
  return value
}

export interface Gate<T = void> {
  readonly opened: Promise<T>
  open(value: T): void
  fail(error: unknown): void
}

/** A promise settled from outside. */
export function createGate<T = void>(): Gate<T> {
  let open: (value: T) => void = () => {}
  let fail: (error: unknown) => void = () => {}
  const opened = new Promise<T>((resolve, reject) => {
    open = resolve
    fail = reject
  })
  return { opened, open, fail }
}

export type Operation = Exclude<
  { [Key in keyof Storage]-?: Storage[Key] extends (...args: never[]) => unknown ? Key : never }[keyof Storage],
  'close' | 'checkSchema'
>

type Wrap = <T>(operation: Operation, call: () => Promise<T>) => Promise<T>

/** The storage with something around each of its operations. */
export function wrapStorage(storage: Storage, wrap: Wrap): Storage {
  return {
    ...storage,
    migrate: () => wrap('migrate', () => storage.migrate()),
    enqueue: (runs) => wrap('enqueue', () => storage.enqueue(runs)),
    claim: (params) => wrap('claim', () => storage.claim(params)),
    commit: (commits) => wrap('commit', () => storage.commit(commits)),
    renew: (leases, leaseMs) => wrap('renew', () => storage.renew(leases, leaseMs)),
    recover: (params) => wrap('recover', () => storage.recover(params)),
    command: (command) => wrap('command', () => storage.command(command)),
    purge: (params) => wrap('purge', () => storage.purge(params)),
    getRun: (runId, scope) => wrap('getRun', () => storage.getRun(runId, scope)),
    getRuns: (query) => wrap('getRuns', () => storage.getRuns(query)),
    getSteps: (runId, scope) => wrap('getSteps', () => storage.getSteps(runId, scope)),
    counts: (query) => wrap('counts', () => storage.counts(query)),
    nextDue: (jobs) => wrap('nextDue', () => storage.nextDue(jobs)),
  }
}

/** A worker whose process dies: from then on nothing it sends arrives, and no answer reaches it. */
export function createMortal(storage: Storage): { readonly storage: Storage; kill(): void } {
  let dead = false
  const silence = <T>() => new Promise<T>(() => {})
  return {
    storage: wrapStorage(storage, async (_operation, call) => {
      if (dead) return silence()
      const answer = await call()
      return dead ? silence() : answer
    }),
    kill() {
      dead = true
    },
  }
}

export interface Counted {
  readonly storage: Storage
  readonly calls: Partial<Record<Operation, number>>
  reset(): void
}

export function countCalls(storage: Storage): Counted {
  let calls: Partial<Record<Operation, number>> = {}
  return {
    storage: wrapStorage(storage, (operation, call) => {
      calls[operation] = (calls[operation] ?? 0) + 1
      return call()
    }),
    get calls() {
      return calls
    },
    reset() {
      calls = {}
    },
  }
}

export interface Faulty {
  readonly storage: Storage
  /** From now on these operations (all, unless named) throw before they do anything. */
  fail(...operations: readonly Operation[]): void
  /** The next call of the operation is carried out, and its answer is lost. */
  loseAnswer(operation: Operation): void
  heal(): void
}

export function createFaulty(storage: Storage): Faulty {
  let isDown: (operation: Operation) => boolean = () => false
  const losing = new Set<Operation>()
  return {
    storage: wrapStorage(storage, async (operation, call) => {
      if (isDown(operation)) throw new StorageError('STORAGE_UNAVAILABLE', 'The database is away.')
      const answer = await call()
      if (losing.delete(operation)) throw new StorageError('STORAGE_UNAVAILABLE', 'The connection was cut.')
      return answer
    }),
    fail(...operations) {
      isDown = operations.length === 0 ? () => true : (operation) => operations.includes(operation)
    },
    loseAnswer(operation) {
      losing.add(operation)
    },
    heal() {
      isDown = () => false
    },
  }
}
