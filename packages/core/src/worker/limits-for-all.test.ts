import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  declareJob,
  defineJob,
  type Durably,
  type DurablyOptions,
  type JobOptions,
  type Storage,
  StorageError,
} from '../index'
import { type LimitStorage, MOST_STARTS } from '../storage'
import { createTaskQueue } from '../queue/index'
import { settled } from '../testing/fake-clock'
import { anything, type Bench, createBench, createGate, type Gate } from '../testing/test-bench'

let bench: Bench

beforeEach(() => {
  bench = createBench()
})

afterEach(() => bench.close())

/** So long that what happens in a test was not found by polling. */
const NEVER = 3_600_000

type Limits = Pick<JobOptions<string, unknown, unknown>, 'concurrency' | 'rateLimit' | 'scope'>

/** Processes that have the same jobs, whose runs stay until they are let go. */
class Fleet {
  readonly workers: readonly Durably[]
  readonly begun: string[] = []
  readonly #gates = new Map<string, Gate>()

  constructor(jobs: Readonly<Record<string, Limits>>, options: Partial<DurablyOptions> = {}, size = 2) {
    const definitions = Object.fromEntries(
      Object.entries(jobs).map(([name, limits]) => [
        name,
        defineJob({ name, input: anything, ...limits }, async (_ctx, payload) => {
          this.begun.push(String(payload))
          const gate = createGate()
          this.#gates.set(String(payload), gate)
          await gate.opened
        }),
      ]),
    )
    this.workers = Array.from({ length: size }, () => {
      const durably = bench.open({ concurrency: 10, pollingInterval: NEVER, ...options })
      durably.register(definitions)
      return durably
    })
  }

  get first(): Durably {
    const [first] = this.workers
    if (first === undefined) throw new Error('There is no worker.')
    return first
  }

  async enter(jobName: string, names: string, count: number): Promise<readonly string[]> {
    const ids: string[] = []
    for (let n = 1; n <= count; n++) ids.push((await this.first.trigger(jobName, `${names}${n}`)).id)
    return ids
  }

  async start(): Promise<void> {
    for (const worker of this.workers) worker.start()
    await settled()
  }

  async leave(...names: string[]): Promise<void> {
    for (const name of names) this.#gates.get(name)?.open()
    await settled()
  }

  async empty(): Promise<void> {
    while (this.#gates.size > 0) {
      for (const [name, gate] of this.#gates) {
        this.#gates.delete(name)
        gate.open()
      }
      await settled()
    }
  }

  running(): number {
    return this.workers.reduce((sum, worker) => sum + worker.health().active.length, 0)
  }
}

describe('concurrency for all workers together', () => {
  it('is never exceeded, and who waits for it is woken when a run ends elsewhere', async () => {
    const fleet = new Fleet({ limited: { concurrency: 3, scope: 'database' } })
    await fleet.enter('limited', 'a', 7)
    await fleet.start()
    expect(fleet.begun).toEqual(['a1', 'a2', 'a3'])
    for (let ended = 1; ended <= 4; ended++) {
      await fleet.leave(`a${ended}`)
      expect(fleet.begun).toHaveLength(3 + ended)
      expect(fleet.running()).toBe(3)
    }
    await fleet.empty()
  })

  it("is each worker's own without the scope", async () => {
    const fleet = new Fleet({ limited: { concurrency: 3, scope: 'worker' } })
    await fleet.enter('limited', 'a', 7)
    await fleet.start()
    expect(fleet.running()).toBe(6)
    await fleet.empty()
  })

  it('keeps no other job from beginning, nor is kept by them', async () => {
    const fleet = new Fleet(
      { limited: { concurrency: 2, scope: 'database' }, free: {}, other: { concurrency: 1, scope: 'database' } },
      { concurrency: 1 },
      1,
    )
    await fleet.enter('free', 'free', 6)
    await fleet.enter('limited', 'limited', 6)
    await fleet.enter('other', 'other', 6)
    await fleet.start()
    for (let turn = 0; turn < 8; turn++) await fleet.leave(fleet.begun.at(-1) ?? '')
    for (const name of ['free', 'limited', 'other']) {
      const ofJob = fleet.begun.filter((begun) => begun.startsWith(name))
      expect(ofJob).toEqual([`${name}1`, `${name}2`, `${name}3`])
    }
    await fleet.empty()
  })

  it('finds by its token what a claim took whose answer was lost', async () => {
    let losses = 1
    const claim: LimitStorage['claim'] = async (params, limits) => {
      const answer = await bench.storage.limits.claim(params, limits)
      if (answer.runs.length > 0 && losses-- > 0) throw new StorageError('STORAGE_UNAVAILABLE', 'cut off')
      return answer
    }
    const storage: Storage = { ...bench.storage, limits: { ...bench.storage.limits, claim } }
    const rateLimit = { max: 3, per: NEVER }
    const fleet = new Fleet({ limited: { concurrency: 2, rateLimit, scope: 'database' } }, { storage }, 1)
    await fleet.enter('limited', 'a', 5)
    await fleet.start()
    expect(fleet.begun).toEqual([])
    await bench.clock.advance(10_000)
    expect(fleet.begun).toEqual(['a1', 'a2'])
    await fleet.leave('a1', 'a2')
    expect(fleet.begun).toEqual(['a1', 'a2', 'a3'])
    await fleet.empty()
  })
})

describe('a rate for all workers together', () => {
  const rateLimit = { max: 4, per: 60_000 }

  it('lets so many begin, the next when the first of them is so long ago, and asks for nothing meanwhile', async () => {
    let claims = 0
    const claim: LimitStorage['claim'] = (params, limits) => {
      claims += 1
      return bench.storage.limits.claim(params, limits)
    }
    const storage: Storage = { ...bench.storage, limits: { ...bench.storage.limits, claim } }
    const fleet = new Fleet({ limited: { rateLimit, scope: 'database' } }, { storage })
    await fleet.enter('limited', 'a', 3)
    await fleet.start()
    await bench.clock.advance(20_000)
    await fleet.enter('limited', 'b', 4)
    await settled()
    expect(fleet.begun).toEqual(['a1', 'a2', 'a3', 'b1'])
    const before = claims
    await bench.clock.advance(39_999)
    await fleet.leave('a1', 'a2')
    expect(fleet.begun).toHaveLength(4)
    expect(claims).toBe(before)
    await bench.clock.advance(1)
    expect(fleet.begun.slice(4)).toEqual(['b2', 'b3', 'b4'])
    await fleet.empty()
  })

  it('is remembered when every process has gone', async () => {
    const fleet = new Fleet({ limited: { rateLimit, scope: 'database' } })
    await fleet.enter('limited', 'a', 6)
    await fleet.start()
    await fleet.leave('a1', 'a2', 'a3', 'a4')
    for (const worker of fleet.workers) await worker.stop()
    const later = new Fleet({ limited: { rateLimit, scope: 'database' } })
    await later.start()
    expect(later.begun).toEqual([])
    await bench.clock.advance(60_000)
    expect(later.begun).toEqual(['a5', 'a6'])
    await later.empty()
  })

  it('tells runUntilIdle() when to come again', async () => {
    const durably = bench.open()
    const job = durably.defineJob({ name: 'limited', input: anything, rateLimit, scope: 'database' }, () => {})
    for (let n = 0; n < 6; n++) await job.trigger(n)
    const { ran, nextWakeAt } = await durably.runUntilIdle()
    expect(ran).toBe(4)
    expect(nextWakeAt).toBe(new Date(bench.clock.now() + 60_000).toISOString())
  })
})

describe('a pause for all', () => {
  it('lets nobody begin a run, before and after a restart, until it ends', async () => {
    const fleet = new Fleet({ plain: {}, limited: { concurrency: 5, scope: 'database' }, other: {} })
    await fleet.first.pauseJob('plain', { scope: 'database' })
    await fleet.first.pauseJob('limited', { scope: 'database' })
    await fleet.enter('plain', 'a', 1)
    await fleet.enter('limited', 'b', 1)
    await fleet.enter('other', 'c', 1)
    await fleet.start()
    expect(fleet.begun).toEqual(['c1'])
    await fleet.empty()
    for (const worker of fleet.workers) await worker.stop()
    const later = new Fleet({ plain: {}, limited: { concurrency: 5, scope: 'database' } })
    await later.start()
    expect(later.begun).toEqual([])
    expect(await later.first.pausedJobs()).toEqual(['limited', 'plain'])
    await later.first.resumeJob('limited', { scope: 'database' })
    await later.workers[1]?.resumeJob('plain', { scope: 'database' })
    await settled()
    expect([...later.begun].sort()).toEqual(['a1', 'b1'])
    expect(await later.first.pausedJobs()).toEqual([])
    await later.empty()
  })

  it('is apart from the pause of one worker', async () => {
    const fleet = new Fleet({ plain: {} }, {}, 1)
    await fleet.enter('plain', 'a', 1)
    fleet.first.pauseJob('plain')
    await fleet.start()
    await fleet.first.resumeJob('plain', { scope: 'database' })
    await settled()
    expect(fleet.begun).toEqual([])
    fleet.first.resumeJob('plain', { scope: 'worker' })
    await settled()
    expect(fleet.begun).toEqual(['a1'])
    await fleet.empty()
  })

  it('can be asked for by a process that only declares the job, and by none that does not know it', async () => {
    const durably = bench.open()
    durably.register({ job: declareJob({ name: 'elsewhere', input: anything }) })
    await durably.pauseJob('elsewhere', { scope: 'database' })
    expect(await durably.pausedJobs()).toEqual(['elsewhere'])
    await expect(durably.pauseJob('unknown', { scope: 'database' })).rejects.toMatchObject({ code: 'NOT_FOUND' })
    expect(() => durably.pauseJob('elsewhere')).toThrow(expect.objectContaining({ code: 'NOT_FOUND' }))
    const wrong = { scope: 'everywhere' } as unknown as { scope: 'worker' }
    expect(() => durably.pauseJob('elsewhere', wrong)).toThrow("scope must be 'worker' or 'database', not everywhere")
    const misspelled = { scop: 'database' } as unknown as { scope: 'worker' }
    expect(() => durably.resumeJob('elsewhere', misspelled)).toThrow('Did you mean "scope"?')
  })
})

describe('explain()', () => {
  it('says why a due run waits for all workers together', async () => {
    const rateLimit = { max: 2, per: 60_000 }
    const fleet = new Fleet({
      slots: { concurrency: 1, scope: 'database' },
      rate: { rateLimit, scope: 'database' },
    })
    const [, slot = ''] = await fleet.enter('slots', 'a', 2)
    const [, , rate = ''] = await fleet.enter('rate', 'b', 3)
    await fleet.start()
    for (const worker of fleet.workers) {
      expect(await worker.explain(slot)).toContain('1 of its runs are running, and its concurrency is 1')
      expect(await worker.explain(rate)).toContain('its rateLimit lets the next run begin in 60000 ms')
    }
    await fleet.first.pauseJob('rate', { scope: 'database' })
    expect(await fleet.workers[1]?.explain(rate)).toContain('its job is paused everywhere')
    await fleet.empty()
  })
})

describe('the options', () => {
  const defined = (limits: object) => defineJob({ name: 'job', input: anything, ...limits }, () => {})

  it('are checked where the job is defined', () => {
    expect(() => defined({ scope: 'cluster', concurrency: 1 })).toThrow("scope must be 'worker' or 'database'")
    expect(() => defined({ scope: 'database' })).toThrow('needs a concurrency or a rateLimit')
    const most = { max: MOST_STARTS, per: 1 }
    expect(defined({ scope: 'database', rateLimit: most })).toMatchObject({ scope: 'database', rateLimit: most })
    expect(() => defined({ scope: 'database', rateLimit: { ...most, max: MOST_STARTS + 1 } })).toThrow(
      'rateLimit.max is at most 10000',
    )
    expect(() => defined({ scope: 'database', rateLimit: { max: 1, per: 1e14 } })).toThrow('100 years')
    expect(defined({ rateLimit: { max: MOST_STARTS + 1, per: 1e14 } })).toMatchObject({ scope: 'worker' })
  })

  it('are refused by a storage that cannot keep them', async () => {
    const { limits: _, ...storage } = bench.storage
    const durably = bench.open({ storage })
    const job = defined({ scope: 'database', concurrency: 1 })
    const missing = expect.objectContaining({ code: 'CAPABILITY_MISSING', capability: 'limits' })
    expect(() => durably.register({ job })).toThrow(missing)
    durably.register({ other: defined({ concurrency: 1 }) })
    await expect(durably.pauseJob('job', { scope: 'database' })).rejects.toThrow(missing)
    await expect(durably.pausedJobs()).rejects.toThrow(missing)
  })
})

describe('types of tasks', () => {
  it('have limits and pauses for all queues on the storage', async () => {
    const options = {
      storage: bench.storage,
      concurrency: 5,
      pollingInterval: NEVER,
      environment: { clock: bench.clock },
    }
    const queues = [createTaskQueue(options), createTaskQueue(options)] as const
    const gate = createGate()
    let begun = 0
    for (const queue of queues) {
      queue.register('send', { concurrency: 2, scope: 'database' }, async () => {
        begun += 1
        await gate.opened
      })
      queue.start()
    }
    await settled()
    await queues[0].pause('send', { scope: 'database' })
    for (let n = 0; n < 5; n++) await queues[0].enqueue('send', n)
    await settled()
    expect(begun).toBe(0)
    await queues[1].resume(undefined, { scope: 'database' })
    await settled()
    expect(begun).toBe(2)
    gate.open()
    await settled()
    expect(begun).toBe(5)
    for (const queue of queues) await queue.stop()
  })
})
