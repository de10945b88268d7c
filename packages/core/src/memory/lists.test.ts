import { describe, expect, it } from 'vitest'
import type { RunRecord } from '../port/records'
import type { PurgeParams } from '../port/storage'
import { newRun } from '../testing/contract/builders'
import { createRandom, type Random } from '../testing/simulation/random'
import type { NewRun } from '../port/writes'
import { createMemoryStorage, type MemoryStorage } from './memory-storage'

const ENDED = ['completed', 'failed', 'timed_out', 'cancelled'] as const
const JOBS = ['a', 'b', 'c'] as const
const TENANTS = ['', 't'] as const

/** Runs come, end, come back and go, by a clock that is now and then set back, with ids in any order. */
class World {
  #nowMs = Date.UTC(2026, 0, 1)
  /** As the storage has it, whose time goes on where the clock is set back. */
  timeMs = this.#nowMs
  readonly storage: MemoryStorage = createMemoryStorage({ now: () => this.#nowMs })
  readonly random: Random

  constructor(seed: number) {
    this.random = createRandom(seed)
  }

  async step(): Promise<void> {
    const passedMs = this.random.chance(0.05) ? -this.random.int(500) : this.random.int(3)
    this.#nowMs += passedMs
    this.timeMs += Math.max(0, passedMs)
    const what = this.random.weighted({ enqueue: 4, end: 4, retry: 1 })
    if (what === 'enqueue') await this.enqueue()
    else if (what === 'end') await this.command('cancel', ['pending'])
    else await this.command('retry', ['cancelled'])
  }

  async enqueue(): Promise<void> {
    const runs: NewRun[] = []
    for (let count = this.random.int(4); count > 0; count--) {
      runs.push(newRun({ jobName: this.random.pick(JOBS), tenant: this.random.pick(TENANTS) }))
    }
    if (this.random.chance(0.5)) runs.reverse()
    await this.storage.enqueue(runs)
  }

  async command(kind: 'cancel' | 'retry', statuses: readonly RunRecord['status'][]): Promise<void> {
    const run = this.random.pickAny(await this.storage.getRuns({ statuses }))
    if (run === undefined) return
    const events = { cancelled: [], requested: [] }
    await this.storage.command(
      kind === 'cancel' ? { kind, runId: run.id, events } : { kind, runId: run.id, events: [] },
    )
  }

  purgeParams(): PurgeParams {
    const { random } = this
    return {
      statuses: random.chance(0.8) ? ENDED : ['failed', 'pending'],
      limit: 1 + random.int(8),
      ...(random.chance(0.5) && { keepNewest: random.int(20) }),
      ...(random.chance(0.3) && { olderThanMs: random.int(300) - 50 }),
      ...(random.chance(0.3) && { before: new Date(this.timeMs - random.int(300) + 50).toISOString() }),
      ...(random.chance(0.3) && { tenant: random.pick(TENANTS) }),
    }
  }

  /** The rule as it is written, by looking at everything. */
  async leftBy(params: PurgeParams): Promise<string[]> {
    const all = await this.storage.getRuns({})
    const { keepNewest = 0, olderThanMs = Number.NaN, before = '9' } = params
    const isOld = ({ finishedAt }: RunRecord) =>
      (finishedAt ?? '') < before && !(Date.parse(finishedAt ?? '') >= this.timeMs - olderThanMs)
    const matching = all
      .filter(({ status, tenant }) => params.statuses.includes(status) && tenant === (params.tenant ?? tenant))
      .filter(({ finishedAt }) => finishedAt !== null)
      .sort((x, y) => compare(`${x.finishedAt} ${x.id}`, `${y.finishedAt} ${y.id}`))
    const gone = matching
      .slice(0, Math.max(0, matching.length - keepNewest))
      .filter(isOld)
      .slice(0, params.limit)
    return all.filter((run) => !gone.includes(run)).map(({ id }) => id)
  }
}

function compare(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1
}

const SEEDS = [1, 2, 3, 4, 5, 6]

describe('lists that are kept in order', () => {
  it.each(SEEDS)('getRuns is newest first, page by page, for seed %i', async (seed) => {
    const world = new World(seed)
    for (let step = 0; step < 300; step++) await world.step()
    await world.storage.purge({ statuses: ENDED, limit: 100 })
    for (let step = 0; step < 100; step++) await world.step()
    const runs = await world.storage.getRuns({})
    const names = runs.map(({ createdAt, id }) => `${createdAt} ${id}`)
    expect(names).toEqual([...names].sort(compare).reverse())
    expect(runs.length).toBeGreaterThan(50)
    const pending = runs.filter(({ status }) => status === 'pending')
    for (const [index, run] of runs.entries()) {
      const page = await world.storage.getRuns({ cursor: run, statuses: ['pending'], limit: 3 })
      expect(page).toEqual(pending.filter((each) => runs.indexOf(each) > index).slice(0, 3))
    }
  })

  it.each(SEEDS)('purge takes what the rule says, for seed %i', async (seed) => {
    const world = new World(seed)
    for (let step = 0; step < 400; step++) {
      await world.step()
      if (step % 4 > 0) continue
      const params = world.purgeParams()
      const left = await world.leftBy(params)
      const before = (await world.storage.getRuns({})).length
      expect(await world.storage.purge(params)).toBe(before - left.length)
      expect((await world.storage.getRuns({})).map(({ id }) => id)).toEqual(left)
    }
    expect((await world.storage.counts({})).cancelled).toBeGreaterThan(0)
  })
})
