import { createDurably, defineJob, type Durably, StorageError } from '@coji/durably-core'
import type { MemoryStorage } from '@coji/durably-core/memory'
import type { FakeClock } from '@coji/durably-core/testing'
import { createCluster, createInbox, createScheduler } from '../../src/index'
import { schemaOf } from '../stage'
import { pick, type Random } from './random'

/** A process of the fleet, and what can happen to it. */
export interface SimProcess {
  readonly durably: Durably
  /** Nothing of it arrives any more. */
  kill(): void
  /** It stands still: nothing of it arrives, and it notices nothing until it goes on. */
  pause(): void
  goOn(): void
  /** Its connection is good from now on. */
  heal(): void
}

export interface ProcessParams {
  readonly workerId: string
  readonly storage: MemoryStorage
  readonly clock: FakeClock
  readonly random: Random
  /** From 0, where nothing goes wrong. */
  readonly faults: number
}

/** Longer than a lead lasts. */
const LONGEST_DELAY_MS = 25_000
const WIRED = ['claim', 'commit', 'renew', 'recover', 'nextDue', 'getSteps', 'enqueue'] as const
const LONGEST_BODY_MS = 20_000

export const EVERY_MS = 9000
export const CONFIRM_MS = 60_000

export function startProcess({ workerId, storage, clock, random, faults }: ProcessParams): SimProcess {
  const line = new Line({ clock, random, faults })
  const offset = pick(random, [0, 3_600_000, -3_600_000, 45_000, -45_000])
  const own = {
    now: () => clock.now() + offset,
    monotonic: () => clock.monotonic(),
    schedule: (ms: number, fn: () => void) => clock.schedule(ms, () => void line.awake().then(fn)),
  }
  const wired = Object.fromEntries(WIRED.map((name) => [name, line.through(storage[name] as Call)]))
  const durably = createDurably({
    ...{ storage: { ...storage, ...wired, cluster: line.throughAll(storage.cluster) } as MemoryStorage, workerId },
    ...{ logger: null, concurrency: 2, pollingInterval: 4000, environment: { clock: own, random } },
  })
  createCluster(durably, { pollingInterval: 2000, reassignAfter: 5000 })
  const work = async (signal: AbortSignal) => {
    await new Promise<void>((resolve) => {
      own.schedule(random() * LONGEST_BODY_MS, resolve)
      signal.addEventListener('abort', () => resolve())
    })
  }
  const input = schemaOf<unknown>()
  const twoSteps = async (ctx: Parameters<Parameters<typeof defineJob>[1]>[0]) => {
    await ctx.run('first', ({ signal }) => work(signal))
    await ctx.run('second', ({ signal }) => work(signal))
  }
  durably.register({
    placed: defineJob({ name: 'placed', input, placement: 'leader', on: 'x' }, twoSteps),
    lasting: defineJob(
      { name: 'lasting', input, placement: 'leader', continuation: { confirmFor: CONFIRM_MS } },
      twoSteps,
    ),
    plain: defineJob({ name: 'plain', input }, twoSteps),
  })
  const schedules = createScheduler(durably)
  schedules.define('often', { job: 'placed', payload: 'tick', every: EVERY_MS, missed: { all: true, max: 1000 } })
  createInbox(durably)
  durably.start()
  return {
    durably,
    kill: () => line.kill(),
    pause: () => line.pause(),
    goOn: () => line.goOn(),
    heal: () => line.heal(),
  }
}

type Call = (...args: readonly unknown[]) => Promise<unknown>

/** Between a process and its storage. What is sent may get lost, and so may its answer; either may take its time. */
class Line {
  readonly #params: Pick<ProcessParams, 'clock' | 'random'>
  #faults: number
  #isDead = false
  #sleep: Promise<void> | null = null
  #wake: () => void = () => {}

  constructor({ clock, random, faults }: Pick<ProcessParams, 'clock' | 'random' | 'faults'>) {
    this.#params = { clock, random }
    this.#faults = faults
  }

  kill(): void {
    this.#isDead = true
  }

  pause(): void {
    this.#sleep ??= new Promise((resolve) => {
      this.#wake = resolve
    })
  }

  goOn(): void {
    this.#sleep = null
    this.#wake()
  }

  heal(): void {
    this.#faults = 0
    this.goOn()
  }

  async awake(): Promise<void> {
    while (this.#sleep !== null) await this.#sleep
    if (this.#isDead) await new Promise<never>(() => {})
  }

  through(call: Call): Call {
    return async (...args) => {
      await this.#way()
      const answer = await call(...args)
      await this.#way()
      return answer
    }
  }

  throughAll<T extends object>(group: T): T {
    const entries = Object.entries(group).map(([name, value]) => [
      name,
      typeof value === 'function' ? this.through(value as Call) : this.throughAll(value as object),
    ])
    return Object.fromEntries(entries) as T
  }

  async #way(): Promise<void> {
    const { clock, random } = this.#params
    if (random() < this.#faults) {
      const ms = random() * LONGEST_DELAY_MS
      await new Promise<void>((resolve) => clock.schedule(ms, resolve))
    }
    await this.awake()
    if (random() < this.#faults) throw new StorageError('STORAGE_UNAVAILABLE', 'The connection was lost.')
  }
}
