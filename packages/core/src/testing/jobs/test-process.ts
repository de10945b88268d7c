import type { Storage, TransactionStorage } from '../../port'
import { createDurably, type Durably, type Handles, type JobRecord, type Plugin } from '../../instance'
import { type Clock, InvalidOptionError } from '../../base'
import type { MemoryStorage } from '../../memory'
import type { DurablyOptions } from '../../engine'

export interface TestProcessParams<TJobs extends JobRecord> {
  readonly jobs: TJobs
  readonly storage: MemoryStorage
  readonly clock: Clock
  readonly plugins: readonly Plugin[]
  readonly options: Partial<DurablyOptions>
}

/** An instance that can die as a process does. */
export interface TestProcess<TJobs extends JobRecord> {
  readonly durably: Durably
  readonly handles: Handles<TJobs>
  /** Nothing that it calls arrives from now on, no answer reaches it, and none of its timers fires. */
  kill(): void
  readonly died: Promise<void>
}

export function createTestProcess<TJobs extends JobRecord>(params: TestProcessParams<TJobs>): TestProcess<TJobs> {
  const { jobs, clock, plugins, options } = params
  let isDead = false
  let die = () => {}
  const died = new Promise<void>((resolve) => {
    die = resolve
  })
  const durably = createDurably({
    ...options,
    storage: silencedWhen(() => isDead, params.storage),
    environment: { clock: stoppedWhen(() => isDead, clock), random: () => 0.5 },
  })
  for (const plugin of plugins) durably.use(plugin)
  return {
    durably,
    handles: durably.register(jobs),
    kill() {
      isDead = true
      die()
    },
    died,
  }
}

/** Bodies that touch no row can be run as they are; a step with a stub never gets here. */
function withoutRows(storage: Storage): TransactionStorage {
  return {
    async commitWith(body) {
      const { commit, value } = await body(NO_TRANSACTION)
      const [answer = { kept: false }] = await storage.commit([commit])
      return { answer, value }
    },
    enqueue: async () => noRows(),
    run: (body) => body(NO_TRANSACTION),
  }
}

const NO_TRANSACTION: unknown = new Proxy({}, { get: () => noRows() })

function noRows(): never {
  throw new InvalidOptionError(
    'A test with createTestDurably() has no database: give the step of ctx.transaction a stub in `steps`.',
  )
}

function stoppedWhen(isDead: () => boolean, clock: Clock): Clock {
  return { ...clock, schedule: (ms, fn) => clock.schedule(ms, () => isDead() || fn()) }
}

/** Its own operations and those of its groups; hints to the dead do no harm. */
function silencedWhen(isDead: () => boolean, storage: Storage): Storage {
  const { events, logs, signals, watch, transaction: _none, ...others } = storage
  const required = silenced(isDead, others)
  return {
    ...required,
    transaction: withoutRows(required),
    ...(events !== undefined && { events: silenced(isDead, events) }),
    ...(logs !== undefined && { logs: silenced(isDead, logs) }),
    ...(signals !== undefined && { signals: silenced(isDead, signals) }),
    ...(watch !== undefined && { watch }),
  }
}

type Call = (...args: readonly unknown[]) => Promise<unknown>

function silenced<T extends object>(isDead: () => boolean, operations: T): T {
  const silence = () => new Promise<never>(() => {})
  const wrap = (call: Call): Call => {
    return async (...args) => {
      if (isDead()) return silence()
      const answer = await call(...args)
      return isDead() ? silence() : answer
    }
  }
  const wrapped = Object.entries(operations).map(([name, value]) => [
    name,
    typeof value === 'function' ? wrap(value as Call) : value,
  ])
  return Object.fromEntries(wrapped) as T
}
