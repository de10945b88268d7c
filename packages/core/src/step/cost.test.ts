import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { RunCommit } from '../storage'
import type { Storage } from '../index'
import { anything, type Bench, countCalls, createBench, createGate } from '../testing/test-bench'
import { settled } from '../testing/fake-clock'

let bench: Bench

beforeEach(() => {
  bench = createBench()
})

afterEach(() => bench.close())

describe('what a run costs', () => {
  it.each([0, 1, 5, 20])('is N + 3 writes and no read for %i steps', async (steps) => {
    const counted = countCalls(bench.storage)
    const durably = bench.open({ storage: counted.storage })
    const job = durably.defineJob({ name: 'job', input: anything }, async (ctx) => {
      for (let n = 0; n < steps; n++) await ctx.run(`step-${n}`, () => ({ n }))
      return steps
    })
    let completed = 0
    durably.on('run:complete', () => {
      completed += 1
    })
    durably.start()
    await settled()
    counted.reset()
    await job.trigger({})
    await settled()
    expect(completed).toBe(1)
    const { claim = 0, ...rest } = counted.calls
    // The second claim is the look for the next run.
    expect(claim).toBeLessThanOrEqual(2)
    expect(rest).toEqual({ enqueue: 1, commit: steps + 1 })
  })

  it('asks when a later run is due only while a slot is free', async () => {
    const counted = countCalls(bench.storage)
    const durably = bench.open({ storage: counted.storage })
    const job = durably.defineJob({ name: 'job', input: anything }, () => {})
    await job.trigger({}, { delay: 500 })
    durably.start()
    await settled()
    counted.reset()
    await job.batchTrigger(Array.from({ length: 5 }, () => ({ payload: {} })))
    await settled()
    expect(await durably.counts()).toMatchObject({ completed: 5, pending: 1 })
    expect(counted.calls['nextDue']).toBe(1)
    await bench.clock.advance(500)
    expect(await durably.counts()).toMatchObject({ completed: 6 })
  })

  it('merges parallel steps into few commits', async () => {
    const commits: RunCommit[] = []
    const storage: Storage = {
      ...bench.storage,
      commit(list) {
        commits.push(...list)
        return bench.storage.commit(list)
      },
    }
    const { run } = await bench.perform(
      (ctx) => Promise.all(Array.from({ length: 50 }, (_, n) => ctx.run(`${n}`, () => n))),
      { storage },
    )
    expect(run).toMatchObject({ status: 'completed', currentStepIndex: 50 })
    expect(commits.length).toBeLessThanOrEqual(3)
    expect(commits.map(({ commitNo }) => commitNo)).toEqual(commits.map((_, n) => n + 1))
  })

  it('sends large commits of many runs in lists of some megabytes', async () => {
    const megabytes: number[] = []
    const storage: Storage = {
      ...bench.storage,
      commit(list) {
        const lengths = list.flatMap(({ steps }) => steps.map(({ output }) => output?.length ?? 0))
        megabytes.push(lengths.reduce((sum, length) => sum + length, 0) / 2 ** 20)
        return bench.storage.commit(list)
      },
    }
    const durably = bench.open({ storage, concurrency: 20 })
    const gate = createGate()
    const job = durably.defineJob({ name: 'large', input: anything }, async (ctx) => {
      await ctx.run('large', async () => {
        await gate.opened
        return 'x'.repeat(1000 * 1000)
      })
    })
    await job.batchTrigger(Array.from({ length: 20 }, () => ({ payload: {} })))
    durably.start()
    await settled()
    gate.open()
    await settled()
    expect(await durably.counts()).toMatchObject({ completed: 20 })
    expect(Math.max(...megabytes)).toBeLessThanOrEqual(5)
    expect(Math.max(...megabytes)).toBeGreaterThan(2)
  })

  it('is never two commits of one run in flight', async () => {
    let inFlight = 0
    let most = 0
    const gates: (() => void)[] = []
    const storage: Storage = {
      ...bench.storage,
      async commit(list) {
        inFlight += 1
        most = Math.max(most, inFlight)
        const gate = createGate()
        gates.push(() => gate.open())
        await gate.opened
        inFlight -= 1
        return bench.storage.commit(list)
      },
    }
    const { now } = await bench.perform(
      (ctx) => Promise.all(['a', 'b', 'c'].map((name) => ctx.run(name, () => name))),
      { storage },
    )
    while (gates.length > 0) {
      for (const open of gates.splice(0)) open()
      await settled()
    }
    expect(most).toBe(1)
    expect(await now()).toMatchObject({ status: 'completed' })
  })

  it('is nothing for the time a step takes, without history', async () => {
    const counted = countCalls(bench.storage)
    const gate = createGate()
    await bench.perform((ctx) => ctx.run('long', () => gate.opened), { storage: counted.storage })
    counted.reset()
    await bench.clock.advance(4000)
    expect(counted.calls.commit).toBeUndefined()
    gate.open()
    await settled()
    expect(counted.calls.commit).toBe(2)
  })

  it('is one more for the start of a once step', async () => {
    const counted = countCalls(bench.storage)
    await bench.perform((ctx) => ctx.run('pay', { once: true }, () => {}), { storage: counted.storage })
    expect(counted.calls.commit).toBe(3)
  })

  it('is one commit for much progress, with the last value', async () => {
    const counted = countCalls(bench.storage)
    const gate = createGate()
    const { now } = await bench.perform(
      async (ctx) => {
        for (let n = 0; n < 100; n++) ctx.progress(n)
        await gate.opened
      },
      { storage: counted.storage },
    )
    await bench.clock.advance(300)
    expect(counted.calls.commit).toBe(1)
    expect(await now()).toMatchObject({ progress: { current: 99 } })
    gate.open()
  })

  it('is one list for the commits of several runs', async () => {
    const lists: number[] = []
    const first = createGate()
    const [one, others] = [createGate(), createGate()]
    const storage: Storage = {
      ...bench.storage,
      async commit(list) {
        lists.push(list.length)
        if (lists.length === 1) await first.opened
        return bench.storage.commit(list)
      },
    }
    const durably = bench.open({ storage, concurrency: 10 })
    const job = durably.defineJob({ name: 'job', input: anything }, (_ctx, n) => (n === 0 ? one : others).opened)
    await job.batchTrigger(Array.from({ length: 10 }, (_, payload) => ({ payload })))
    durably.start()
    await settled()
    one.open()
    await settled()
    others.open()
    await settled()
    first.open()
    await settled()
    expect(lists).toEqual([1, 9])
    expect(await durably.counts()).toMatchObject({ completed: 10 })
  })

  it('is one renewal for all runs held', async () => {
    const counted = countCalls(bench.storage)
    const gate = createGate()
    const durably = bench.open({ storage: counted.storage, concurrency: 10 })
    const job = durably.defineJob({ name: 'job', input: anything }, () => gate.opened)
    await job.batchTrigger(Array.from({ length: 10 }, (_, payload) => ({ payload })))
    durably.start()
    await settled()
    await bench.clock.advance(10_500)
    expect(counted.calls.renew).toBe(2)
    gate.open()
  })

  it('is at most two calls a second for an idle worker', async () => {
    const counted = countCalls(bench.storage)
    const durably = bench.open({ storage: counted.storage })
    durably.defineJob({ name: 'job', input: anything }, () => {})
    durably.start()
    await settled()
    counted.reset()
    await bench.clock.advance(100_000)
    const calls = Object.values(counted.calls).reduce((sum, count) => sum + count, 0)
    expect(calls).toBeLessThanOrEqual(220)
  })
})
