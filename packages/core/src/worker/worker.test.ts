import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { DurablyOptions, Storage, TriggerOptions } from '../index'
import { anything, type Bench, createBench, createGate, found, type Gate, recordEvents } from '../testing/test-bench'
import { settled } from '../testing/fake-clock'

let bench: Bench

beforeEach(() => {
  bench = createBench()
})

afterEach(() => bench.close())

/** A job whose runs stay until they are let go one by one. */
function hall(options: Partial<DurablyOptions> = {}) {
  const durably = bench.open(options)
  const inside: string[] = []
  const gates = new Map<string, Gate>()
  let most = 0
  const job = durably.defineJob({ name: 'hall', input: anything }, async (_ctx, payload) => {
    const name = String(payload)
    const gate = createGate()
    gates.set(name, gate)
    inside.push(name)
    most = Math.max(most, inside.length)
    await gate.opened
    inside.splice(inside.indexOf(name), 1)
  })
  return {
    durably,
    job,
    inside,
    most: () => most,
    enter: (name: string, trigger: TriggerOptions = {}) => job.trigger(name, trigger),
    async leave(name: string) {
      found(gates.get(name)).open()
      await settled()
    },
  }
}

describe('concurrency', () => {
  it('is one run at a time unless told otherwise', async () => {
    const { durably, inside, enter, leave } = hall()
    for (const name of ['a', 'b', 'c']) await enter(name)
    durably.start()
    await settled()
    expect(inside).toEqual(['a'])
    await leave('a')
    expect(inside).toEqual(['b'])
    await leave('b')
    expect(inside).toEqual(['c'])
    await leave('c')
  })

  it('fills all slots, and each again as soon as it is free', async () => {
    const { durably, inside, enter, leave } = hall({ concurrency: 3 })
    durably.start()
    for (const name of ['a', 'b', 'c', 'd', 'e']) await enter(name)
    await settled()
    expect(inside).toEqual(['a', 'b', 'c'])
    await leave('b')
    expect(inside).toEqual(['a', 'c', 'd'])
    for (const name of ['a', 'c', 'd', 'e']) await leave(name)
  })

  it.each([
    ['concurrency 0', { concurrency: 0 }],
    ['half a slot', { concurrency: 1.5 }],
    ['no polling', { pollingInterval: 0 }],
    ['a negative heartbeat', { heartbeatInterval: -1 }],
    ['a lease shorter than two heartbeats', { heartbeatInterval: 5000, staleThreshold: 9000 }],
    ['no crash allowed', { maxCrashes: 0 }],
    ['a lease that is no number', { staleThreshold: Number.NaN }],
    ['a worker without a name', { workerId: '' }],
    ['an endless polling interval', { pollingInterval: Number.POSITIVE_INFINITY }],
  ])('refuses %s', (_what, options) => {
    expect(() => bench.open(options)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }))
  })
})

describe('a concurrency key', () => {
  it('lets one run at a time, and does not hold up others', async () => {
    const { durably, inside, enter, leave } = hall({ concurrency: 5 })
    durably.start()
    await enter('a1', { concurrencyKey: 'a' })
    await enter('a2', { concurrencyKey: 'a' })
    await enter('a3', { concurrencyKey: 'a' })
    await enter('b1', { concurrencyKey: 'b' })
    await enter('free')
    await settled()
    expect(inside).toEqual(['a1', 'b1', 'free'])
    await leave('a1')
    expect(inside).toEqual(['b1', 'free', 'a2'])
    for (const name of ['a2', 'a3', 'b1', 'free']) await leave(name)
  })

  it('leaves those who wait pending', async () => {
    const { durably, enter, leave } = hall({ concurrency: 2 })
    durably.start()
    await enter('a1', { concurrencyKey: 'a' })
    const { id } = await enter('a2', { concurrencyKey: 'a' })
    await settled()
    expect(await durably.getRun(id)).toMatchObject({ status: 'pending', concurrencyKey: 'a' })
    await leave('a1')
    expect(await durably.getRun(id)).toMatchObject({ status: 'running' })
    await leave('a2')
  })

  it('lets as many as its limit', async () => {
    const { durably, inside, enter, leave, most } = hall({ concurrency: 10 })
    durably.start()
    const names = Array.from({ length: 8 }, (_, n) => `k${n}`)
    for (const name of names) await enter(name, { concurrencyKey: 'k', concurrencyLimit: 3 })
    await settled()
    expect(inside).toEqual(['k0', 'k1', 'k2'])
    for (const name of names) await leave(name)
    expect(most()).toBe(3)
  })

  it('holds for all workers and all jobs of a tenant', async () => {
    const one = hall()
    const two = bench.open()
    const inside: string[] = []
    const gate = createGate()
    const other = two.defineJob({ name: 'other', input: anything }, async () => {
      inside.push('other')
      await gate.opened
    })
    one.durably.start()
    two.start()
    await one.enter('a', { concurrencyKey: 'k' })
    await settled()
    await other.trigger({}, { concurrencyKey: 'k' })
    await bench.clock.advance(3000)
    expect([...one.inside, ...inside]).toEqual(['a'])
    await one.leave('a')
    await bench.clock.advance(1200)
    expect(inside).toEqual(['other'])
    gate.open()
  })

  it('is another one for another tenant', async () => {
    const { durably, inside, enter, leave } = hall({ concurrency: 2 })
    durably.start()
    await enter('a', { concurrencyKey: 'k', tenant: 'one' })
    await enter('b', { concurrencyKey: 'k', tenant: 'two' })
    await settled()
    expect(inside).toEqual(['a', 'b'])
    await leave('a')
    await leave('b')
  })

  it('is free again however the run ends', async () => {
    const durably = bench.open({ concurrency: 2 })
    const job = durably.defineJob({ name: 'job', input: anything, timeout: 100 }, async (ctx, act) => {
      if (act === 'fail') throw new Error('no')
      if (act === 'hang')
        await new Promise((_resolve, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason)))
    })
    durably.start()
    for (const act of ['fail', 'hang', 'cancel', 'last']) {
      const { id } = await job.trigger(act === 'cancel' ? 'hang' : act, { concurrencyKey: 'k' })
      await settled()
      if (act === 'cancel') await durably.cancel(id)
      await bench.clock.advance(150)
    }
    expect(await durably.counts()).toMatchObject({ failed: 1, timed_out: 1, cancelled: 1, completed: 1 })
  })
})

describe('a job nobody here knows', () => {
  it('stays pending and is reported once', async () => {
    const elsewhere = bench.open()
    const job = elsewhere.defineJob({ name: 'exotic', input: anything }, () => 'elsewhere')
    const { id } = await job.trigger({})
    await job.trigger({})
    const durably = bench.open()
    const known = durably.defineJob({ name: 'known', input: anything }, () => 'here')
    const events = recordEvents(durably, ['job:unknown', 'worker:error'])
    durably.start()
    await known.trigger({})
    await bench.clock.advance(200_000)
    expect(events).toMatchObject([{ type: 'job:unknown', jobName: 'exotic' }])
    expect(await durably.getRun(id)).toMatchObject({ status: 'pending', crashCount: 0 })
    expect(await known.getRuns()).toMatchObject([{ status: 'completed' }])
    elsewhere.start()
    await settled()
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed', output: 'elsewhere' })
  })

  it('is reported also when it turns up later', async () => {
    const durably = bench.open()
    const events = recordEvents(durably, ['job:unknown'])
    durably.start()
    await settled()
    await bench
      .open()
      .defineJob({ name: 'exotic', input: anything }, () => {})
      .trigger({})
    await bench.clock.advance(61_000)
    expect(events).toHaveLength(1)
  })

  it('is not reported while its run is not due', async () => {
    const durably = bench.open()
    const events = recordEvents(durably, ['job:unknown'])
    await bench
      .open()
      .defineJob({ name: 'exotic', input: anything }, () => {})
      .trigger({}, { delay: 600_000 })
    durably.start()
    await bench.clock.advance(130_000)
    expect(events).toEqual([])
  })

  it('is run when it is defined after the start', async () => {
    const durably = bench.open()
    durably.start()
    await settled()
    await bench
      .open()
      .defineJob({ name: 'late', input: anything }, () => {})
      .trigger({})
    const late = durably.defineJob({ name: 'late', input: anything }, () => 'here')
    await bench.clock.advance(1200)
    expect(await late.getRuns()).toMatchObject([{ status: 'completed', output: 'here' }])
  })
})

describe('polling', () => {
  it('is the fall-back for a storage without hints', async () => {
    const { watch: _watch, ...silent } = bench.storage
    const storage: Storage = silent
    const { durably, inside, leave } = hall({ storage, pollingInterval: 3000 })
    durably.start()
    await settled()
    const other = bench.open({ storage }).defineJob({ name: 'hall', input: anything }, () => {})
    await other.trigger('a')
    await settled()
    expect(inside).toEqual([])
    await bench.clock.advance(3400)
    expect(inside).toEqual(['a'])
    await leave('a')
  })

  it('can be hurried by wake', async () => {
    const { watch: _watch, ...silent } = bench.storage
    const storage: Storage = silent
    const { durably, inside, leave } = hall({ storage })
    durably.start()
    await settled()
    await bench
      .open({ storage })
      .defineJob({ name: 'hall', input: anything }, () => {})
      .trigger('a')
    durably.wake()
    await settled()
    expect(inside).toEqual(['a'])
    await leave('a')
  })

  it('does nothing by wake before start', async () => {
    const { durably, inside, enter } = hall()
    await enter('a')
    durably.wake()
    await settled()
    expect(inside).toEqual([])
  })
})

describe('a long queue', () => {
  it('is worked off in order, one after the other, without time passing', async () => {
    const durably = bench.open()
    const order: unknown[] = []
    const job = durably.defineJob({ name: 'job', input: anything }, (_ctx, payload) => void order.push(payload))
    const numbers = Array.from({ length: 300 }, (_, n) => n)
    await job.batchTrigger(numbers.map((payload) => ({ payload })))
    durably.start()
    await settled()
    expect(order).toEqual(numbers)
  })
})
