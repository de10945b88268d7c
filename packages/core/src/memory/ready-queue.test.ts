import { describe, expect, it } from 'vitest'
import type { RunRecord } from '../port/records'
import { newRun, outcomeOf, runCommit } from '../testing/contract/builders'
import type { NewRun } from '../port/writes'
import { Heap } from './heap'
import { createMemoryStorage, type MemoryStorage } from './memory-storage'

/** A generator with a seed, so that a failure can be seen again. */
function seeded(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

describe('heap', () => {
  it('gives its items in order, with others taken from the middle', () => {
    const random = seeded(7)
    for (let round = 0; round < 50; round++) {
      const heap = new Heap<{ position: number; value: number }>((a, b) => a.value < b.value)
      const items = Array.from({ length: 60 }, () => ({ position: -1, value: random(40) }))
      for (const item of items) heap.push(item)
      const gone = items.filter(() => random(3) === 0)
      for (const item of gone) heap.remove(item)
      for (const item of gone) heap.remove(item)
      const values: number[] = []
      for (let item = heap.peek(); item !== undefined; item = heap.peek()) {
        values.push(item.value)
        heap.remove(item)
      }
      const expected = items.filter((item) => !gone.includes(item)).map(({ value }) => value)
      expect(values).toEqual(expected.sort((a, b) => a - b))
      expect(heap.size).toBe(0)
    }
  })
})

describe('order of claims', () => {
  const JOBS = ['a', 'b', 'c']
  const JOBS_KNOWN = ['a', 'b']

  class World {
    nowMs = Date.UTC(2026, 0, 1)
    readonly storage: MemoryStorage = createMemoryStorage({ now: () => this.nowMs })
    readonly held: RunRecord[] = []
    readonly random: (below: number) => number

    constructor(seed: number) {
      this.random = seeded(seed)
    }

    async step(): Promise<void> {
      const choice = this.random(10)
      this.nowMs += this.random(3)
      if (choice < 4) await this.storage.enqueue([this.anyRun()])
      else if (choice < 7) await this.claim()
      else if (choice < 9) await this.leave()
      else await this.cancel()
    }

    anyRun(): NewRun {
      return newRun({
        jobName: JOBS[this.random(3)] ?? 'a',
        priority: this.random(3),
        start: { afterMs: this.random(20) - 10 },
        concurrencyKey: [null, 'k', 'l'][this.random(3)] ?? null,
        concurrencyLimit: 1 + this.random(3),
        holdKeyWhileWaiting: this.random(3) === 0,
      })
    }

    async claim(): Promise<void> {
      const expected = await this.expectedNext()
      const params = {
        workerId: 'w',
        claimToken: 'token',
        jobs: JOBS_KNOWN,
        limit: 1,
        leaseMs: 60_000,
        holdsSuspect: false,
        events: [],
      }
      const claimed = await this.storage.claim(params)
      expect(claimed.map(({ id }) => id)).toEqual(expected === undefined ? [] : [expected.id])
      this.held.push(...claimed)
    }

    async leave(): Promise<void> {
      const [run] = this.held.splice(this.random(this.held.length), 1)
      if (run === undefined) return
      const lease = { runId: run.id, epoch: run.leaseEpoch, token: 'token', leaderEpoch: null }
      const kind = (['complete', 'release', 'retryLater', 'park'] as const)[this.random(4)] ?? 'complete'
      const outcome = kind === 'retryLater' ? outcomeOf(kind, { delayMs: this.random(10) }) : outcomeOf(kind)
      await this.storage.commit([runCommit({ lease, commitNo: 1 }, { outcome })])
    }

    async cancel(): Promise<void> {
      const pending = await this.storage.getRuns({ statuses: ['pending'] })
      const run = pending[this.random(pending.length)]
      if (run === undefined) return
      const events = { cancelled: [], requested: [] }
      await this.storage.command({ kind: 'cancel', runId: run.id, events })
    }

    /** The rule as it is written, by looking at everything. */
    async expectedNext(): Promise<RunRecord | undefined> {
      const runs = await this.storage.getRuns({})
      const now = new Date(this.nowMs).toISOString()
      const isFree = (run: RunRecord) => {
        if (run.concurrencyKey === null || run.concurrencySlot !== null) return true
        const sharing = runs.filter(({ concurrencyKey }) => concurrencyKey === run.concurrencyKey)
        const taken = new Set(sharing.map(({ concurrencySlot }) => concurrencySlot))
        return Array.from({ length: run.concurrencyLimit }, (_, slot) => slot).some((slot) => !taken.has(slot))
      }
      return runs
        .filter(({ status, jobName }) => status === 'pending' && JOBS_KNOWN.includes(jobName))
        .filter((run) => run.availableAt !== null && run.availableAt <= now && isFree(run))
        .sort((a, b) => b.priority - a.priority || compare(a.availableAt, b.availableAt) || compare(a.id, b.id))[0]
    }
  }

  function compare(a: string | null, b: string | null): number {
    return a === b ? 0 : (a ?? '') < (b ?? '') ? -1 : 1
  }

  it.each([1, 2, 3, 4, 5, 6, 7, 8])('is the one of the rule, for seed %i', async (seed) => {
    const world = new World(seed)
    for (let step = 0; step < 400; step++) await world.step()
    expect((await world.storage.counts({})).completed).toBeGreaterThan(5)
  })
})

describe('hints', () => {
  it('tell of a slot that is free again', async () => {
    const storage = createMemoryStorage()
    await storage.enqueue([newRun({ concurrencyKey: 'k' }), newRun({ concurrencyKey: 'k' })])
    const claim = {
      workerId: 'w',
      claimToken: 't',
      jobs: ['job'],
      limit: 2,
      leaseMs: 60_000,
      holdsSuspect: false,
      events: [],
    }
    const [run] = await storage.claim(claim)
    const kinds: string[] = []
    storage.watch.subscribe(({ kind }) => kinds.push(kind))
    const lease = { runId: run?.id ?? '', epoch: 1, token: 't', leaderEpoch: null }
    await storage.commit([runCommit({ lease, commitNo: 1 }, { outcome: outcomeOf('complete') })])
    expect(kinds).toEqual(['run', 'runs'])
  })
})

describe('an injected clock', () => {
  it('decides what is due, expired and recorded', async () => {
    let nowMs = Date.UTC(2026, 0, 1)
    const storage = createMemoryStorage({ now: () => nowMs })
    await storage.enqueue([newRun({ start: { afterMs: 5000 } })])
    const claim = () =>
      storage.claim({
        workerId: 'w',
        claimToken: 't',
        jobs: ['job'],
        limit: 1,
        leaseMs: 1000,
        holdsSuspect: false,
        events: [],
      })
    expect(await storage.nextDue(['job'])).toMatchObject({ runInMs: 5000 })
    nowMs += 4999
    expect(await claim()).toEqual([])
    nowMs += 1
    const [run] = await claim()
    expect(run?.startedAt).toBe('2026-01-01T00:00:05.000Z')
    expect(run?.leaseUntil).toBe('2026-01-01T00:00:06.000Z')
    expect(await storage.nextDue(['job'])).toMatchObject({ runInMs: null, leaseInMs: 1000 })
  })

  it('keeps instants of fixed width, however far', async () => {
    const storage = createMemoryStorage()
    const runs = [newRun({ start: { afterMs: Number.MAX_SAFE_INTEGER } }), newRun({ start: { afterMs: -1e15 } })]
    const answers = await storage.enqueue(runs)
    expect(answers.map(({ run }) => run.availableAt)).toEqual(['9999-12-31T23:59:59.999Z', '1970-01-01T00:00:00.000Z'])
  })
})
