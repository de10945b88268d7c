import type { NewRun, RunRecord } from '@coji/durably-core'
import Database from 'better-sqlite3'
import { expect, it } from 'vitest'
import { LONG_PATIENCE_MS } from '../../../test/pace'
import { scaled } from '../../../test/scale'
import { createKyselyStorage, type KyselyStorage } from '../src'
import { betterSqlite3 } from '../src/drivers/better-sqlite3'
import { claim, COMPLETE, newCommit, newRun } from './builders'

const STEPS = scaled({ quick: 400, full: 4000 })

/** A generator with a seed, so that a failure can be seen again. */
function seeded(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

/** One database, its clock, and who claims from it. Most runs wait for a few keys that are taken. */
class World {
  nowMs = Date.UTC(2026, 0, 1)
  readonly storage: KyselyStorage
  readonly held: RunRecord[] = []
  readonly random: (below: number) => number
  claims = 0
  behindMany = 0

  constructor(seed: number) {
    this.random = seeded(seed)
    const database = new Database(':memory:')
    // The one function the storage tells the time with.
    database.function('strftime', { varargs: true }, (_format: unknown, instant: unknown, shift: unknown = '') => {
      const base = instant === 'now' ? this.nowMs : Date.parse(String(instant))
      return new Date(Math.round(base + Number.parseFloat(`0${shift}`.replace(/^0([+-])/, '$1')) * 1000)).toISOString()
    })
    this.storage = createKyselyStorage({ dialect: betterSqlite3({ database }) })
  }

  async step(): Promise<void> {
    const choice = this.random(10)
    this.nowMs += this.random(3)
    if (choice < 3) await this.storage.enqueue(Array.from({ length: this.random(6) }, () => this.anyRun()))
    else if (choice < 8) await this.claim()
    else await this.leave()
  }

  anyRun(): NewRun {
    const isKeyless = this.random(12) === 0
    return newRun({
      tenant: ['', 'a'][this.random(2)] ?? '',
      jobName: ['job', 'job', 'job', 'unknown'][this.random(4)] ?? 'job',
      priority: this.random(3),
      start: { afterMs: this.random(20) - 10 },
      concurrencyKey: isKeyless ? null : (['k', 'k', 'k', 'l', 'm'][this.random(5)] ?? 'k'),
      concurrencyLimit: isKeyless ? 1 : 1 + this.random(2),
      holdKeyWhileWaiting: this.random(3) === 0,
    })
  }

  async claim(): Promise<void> {
    const { next, before } = await this.expectedNext()
    const claimed = await claim(this.storage)
    expect(claimed.map(({ id }) => id)).toEqual(next === undefined ? [] : [next.id])
    this.held.push(...claimed)
    this.claims += claimed.length
    if (next !== undefined && before > 32) this.behindMany += 1
  }

  async leave(): Promise<void> {
    const [run] = this.held.splice(this.random(this.held.length), 1)
    if (run === undefined) return
    const untold = { events: [], eventsIfCancelled: [] }
    const retryLater = {
      kind: 'retryLater',
      delayMs: this.random(10),
      error: 'not yet',
      detail: { name: 'Error' },
    } as const
    const outcome = this.random(2) === 0 ? COMPLETE : { ...retryLater, ...untold }
    await this.storage.commit([newCommit(run, { outcome })])
  }

  /** The rule as it is written, by looking at everything; and how many due runs are before that one. */
  async expectedNext(): Promise<{ next: RunRecord | undefined; before: number }> {
    const runs = await this.storage.getRuns({})
    const now = new Date(this.nowMs).toISOString()
    const isFree = (run: RunRecord) => {
      if (run.concurrencyKey === null || run.concurrencySlot !== null) return true
      const taken = runs.filter(({ tenant, concurrencyKey, concurrencySlot }) => {
        const isShared = tenant === run.tenant && concurrencyKey === run.concurrencyKey
        return isShared && concurrencySlot !== null && concurrencySlot < run.concurrencyLimit
      })
      return taken.length < run.concurrencyLimit
    }
    const due = runs
      .filter(({ status, jobName }) => status === 'pending' && jobName === 'job')
      .filter(({ availableAt }) => availableAt !== null && availableAt <= now)
      .sort((a, b) => b.priority - a.priority || compare(a.availableAt, b.availableAt) || compare(a.id, b.id))
    const place = due.findIndex(isFree)
    return { next: due[place], before: place }
  }
}

function compare(a: string | null, b: string | null): number {
  return a === b ? 0 : (a ?? '') < (b ?? '') ? -1 : 1
}

it.each([1, 2, 3, 4])(
  'the run that is claimed is the one of the rule, for seed %i',
  { timeout: LONG_PATIENCE_MS },
  async (seed) => {
    const world = new World(seed)
    await world.storage.migrate()
    for (let step = 0; step < STEPS; step++) await world.step()
    expect(world.claims).toBeGreaterThan(50)
    expect(world.behindMany).toBeGreaterThan(10)
    await world.storage.close()
  },
)
