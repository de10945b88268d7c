import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { scaled } from '../../../../test/scale'
import { type DurablyOptions, type EventStream, type Storage, StorageError, type StoredEvent } from '../index'
import { createRandom } from '../testing/simulation/random'
import { anything, type Bench, createBench, createGate, type Gate, type JobBody } from '../testing/test-bench'
import { settled } from '../testing/fake-clock'

let bench: Bench

beforeEach(() => {
  bench = createBench()
})

afterEach(() => bench.close())

const HISTORY = { name: 'history', records: { events: true, logs: true } }

function open(options: Partial<DurablyOptions> = {}) {
  return bench.open(options).use(HISTORY)
}

/** A worker that takes what `trigger` creates. */
function work(execute: JobBody, options: Partial<DurablyOptions> = {}) {
  const durably = open(options)
  const job = durably.defineJob({ name: 'job', input: anything }, execute)
  durably.start()
  const trigger = async (payload: unknown = {}, triggerOptions = {}) => (await job.trigger(payload, triggerOptions)).id
  return { durably, job, trigger }
}

/** A job that runs so many steps at once as it is told, until it is told 0. */
function workToOrder(options: Partial<DurablyOptions> = {}) {
  const orders: number[] = []
  let gate: Gate = createGate()
  let count = 0
  const worker = work(async (ctx) => {
    for (;;) {
      const order = orders.shift()
      if (order === 0) return
      if (order === undefined) await gate.opened
      await Promise.all(Array.from({ length: order ?? 0 }, () => ctx.run(`step ${count++}`, () => count)))
    }
  }, options)
  const order = (steps: number) => {
    orders.push(steps)
    gate.open()
    gate = createGate()
  }
  return { ...worker, order }
}

/** Reads all there is, and shows how far it is. */
function follow(stream: EventStream) {
  const state: { events: StoredEvent[]; end: unknown } = { events: [], end: null }
  const read = async () => {
    for await (const event of stream) state.events.push(event)
    return 'closed'
  }
  read().then(
    (end) => {
      state.end = end
    },
    (error: unknown) => {
      state.end = error
    },
  )
  return state
}

const seqsOf = (events: readonly StoredEvent[]) => events.map(({ seq }) => seq)
const typesOf = (events: readonly StoredEvent[]) => events.map(({ type }) => type)

/** The storage, with something before each look for new events. */
function beforeTail(before: (cursors: readonly { readonly runId: string }[]) => unknown): Storage {
  const { events } = bench.storage
  const tail: typeof events.tail = async (cursors, limit) => {
    await before(cursors)
    return events.tail(cursors, limit)
  }
  return { ...bench.storage, events: { ...events, tail } }
}

describe('subscribe', () => {
  it('replays an ended run as getEvents() has it, and closes', async () => {
    const { durably, trigger } = work((ctx) => ctx.run('a', () => ({ n: 1 })))
    const id = await trigger({ in: 1 })
    await settled()
    const seen = follow(durably.subscribe(id))
    await settled()
    expect(seen.events).toEqual(await durably.getEvents(id))
    expect(seen.events[0]).toMatchObject({ type: 'run:trigger', jobName: 'job', payload: { in: 1 }, seq: 1 })
    expect(typesOf(seen.events).at(-1)).toBe('run:complete')
    expect(seen.end).toBe('closed')
  })

  it('goes on with what comes, at once', async () => {
    const { durably, trigger, order } = workToOrder()
    const id = await trigger()
    await settled()
    const seen = follow(durably.subscribe(id))
    await settled()
    expect(typesOf(seen.events)).toEqual(['run:trigger', 'run:start'])
    order(1)
    await bench.clock.advance(20)
    expect(typesOf(seen.events)).toEqual(['run:trigger', 'run:start', 'step:start', 'step:complete'])
    expect(seen.end).toBeNull()
    order(0)
    await bench.clock.advance(20)
    expect(typesOf(seen.events).at(-1)).toBe('run:complete')
    expect(seen.end).toBe('closed')
  })

  it('follows a run from before it starts, in another instance that hears of nothing', async () => {
    const { trigger, order } = workToOrder()
    const { watch: _watch, ...deaf } = bench.storage
    const other = open({ storage: deaf })
    const id = await trigger({}, { delay: 5000 })
    const seen = follow(other.subscribe(id))
    await bench.clock.advance(4000)
    expect(typesOf(seen.events)).toEqual(['run:trigger'])
    await bench.clock.advance(2100)
    expect(typesOf(seen.events)).toEqual(['run:trigger', 'run:start'])
    order(2)
    order(0)
    await bench.clock.advance(1100)
    expect(seqsOf(seen.events)).toEqual([1, 2, 3, 4, 5, 6, 7])
    expect(seen.end).toBe('closed')
  })

  it('shows what the job logs, with one more query for all of it', async () => {
    let queries = 0
    const gate = createGate()
    const { trigger } = work(async (ctx) => {
      await ctx.run('a', () => gate.opened)
      for (const n of [1, 2, 3]) ctx.log.info(`line ${n}`, { n })
    })
    const ids = [await trigger(), await trigger()]
    const logs: typeof bench.storage.logs = {
      ...bench.storage.logs,
      findLogs(places) {
        queries += 1
        return bench.storage.logs.findLogs(places)
      },
    }
    const reader = open({ storage: { ...bench.storage, logs } })
    const seen = ids.map((id) => follow(reader.subscribe(id)))
    await bench.clock.advance(1000)
    expect(queries).toBe(0)
    gate.open()
    await bench.clock.advance(1000)
    expect(queries).toBeLessThanOrEqual(2)
    for (const { events, end } of seen) {
      const lines = events.filter((event) => event.type === 'log:write').map(({ message, data }) => [message, data])
      expect(lines).toEqual([1, 2, 3].map((n) => [`line ${n}`, { n }]))
      expect(end).toBe('closed')
    }
  })

  it('begins after a number', async () => {
    const { durably, trigger } = work((ctx) => ctx.run('a', () => 1))
    const id = await trigger()
    await settled()
    const seen = [0, 3, 5, 99].map((after) => follow(durably.subscribe(id, { after })))
    await bench.clock.advance(100)
    expect(seen.map(({ events }) => seqsOf(events))).toEqual([[1, 2, 3, 4, 5], [4, 5], [], []])
    expect(seen.map(({ end }) => end)).toEqual(['closed', 'closed', 'closed', 'closed'])
    for (const after of [-1, 0.5, Number.NaN, '1' as never]) {
      expect(() => durably.subscribe(id, { after })).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }))
    }
  })

  it('does not lose or repeat what is written between two looks', async () => {
    const { durably: _writer, trigger, order } = workToOrder()
    const id = await trigger()
    await settled()
    let looks = 0
    const reader = open({
      storage: beforeTail(async () => {
        looks += 1
        if (looks === 5) order(0)
        else order(3)
        await settled()
      }),
    })
    const seen = follow(reader.subscribe(id))
    await bench.clock.advance(10_000)
    expect(seen.events).toEqual(await reader.getEvents(id))
    expect(seen.events.length).toBeGreaterThan(4 * 6)
    expect(seen.end).toBe('closed')
  })

  it('looks again at once for what was told while a look was going on', async () => {
    const { trigger, order } = workToOrder()
    const id = await trigger()
    await settled()
    const { events } = bench.storage
    let isLate = false
    const tail: typeof events.tail = async (cursors, limit) => {
      const answer = await events.tail(cursors, limit)
      if (isLate) order(1)
      isLate = false
      await settled()
      return answer
    }
    const reader = open({ storage: { ...bench.storage, events: { ...events, tail } } })
    const seen = follow(reader.subscribe(id))
    await bench.clock.advance(5000)
    isLate = true
    while (isLate) await bench.clock.advance(10)
    for (let turn = 0; turn < 10; turn++) await bench.clock.advance(5)
    expect(seqsOf(seen.events)).toEqual([1, 2, 3, 4])
  })

  it('reads a long history page by page', async () => {
    const { durably, trigger } = work(async (ctx) => {
      for (let n = 0; n < 300; n++) await ctx.run(`${n}`, () => n)
    })
    const id = await trigger()
    await settled()
    const seen = follow(durably.subscribe(id))
    await bench.clock.advance(0)
    expect(seqsOf(seen.events)).toEqual(Array.from({ length: 603 }, (_, index) => index + 1))
    expect(seen.end).toBe('closed')
  })

  it('gives every reader objects of its own', async () => {
    const { durably, trigger } = work((ctx) => ctx.run('a', () => ({ n: 1 })))
    const id = await trigger({ in: 1 })
    await settled()
    const one = follow(durably.subscribe(id))
    const other = follow(durably.subscribe(id))
    await bench.clock.advance(100)
    expect(one.events).toEqual(other.events)
    for (const [index, event] of one.events.entries()) expect(event).not.toBe(other.events[index])
  })

  it('ends with the end it saw; a retry by hand is followed by subscribing again', async () => {
    let fails = true
    const { durably, trigger } = work(() => {
      if (fails) throw new Error('no')
    })
    const id = await trigger()
    await settled()
    const first = follow(durably.subscribe(id))
    await settled()
    expect(typesOf(first.events)).toEqual(['run:trigger', 'run:start', 'run:fail'])
    expect(first.end).toBe('closed')
    fails = false
    await durably.retry(id)
    const second = follow(durably.subscribe(id, { after: 3 }))
    const whole = follow(durably.subscribe(id))
    await bench.clock.advance(100)
    expect(typesOf(second.events)).toEqual(['run:retry', 'run:start', 'run:complete'])
    expect(seqsOf(whole.events)).toEqual([1, 2, 3, 4, 5, 6])
    expect([second.end, whole.end]).toEqual(['closed', 'closed'])
  })

  it('ends when the run is deleted', async () => {
    const { durably, trigger } = work(() => 1)
    const id = await trigger()
    await settled()
    const reader = durably.subscribe(id).getReader()
    expect((await reader.read()).value).toMatchObject({ seq: 1 })
    await durably.deleteRun(id)
    const rest = []
    for (let next = await reader.read(); !next.done; next = await reader.read()) rest.push(next.value.seq)
    expect(rest).toEqual([2, 3])
  })

  it('ends when the run is deleted while somebody waits', async () => {
    const { durably, trigger } = work(() => 1)
    const id = await trigger({}, { delay: 60_000 })
    const { watch: _watch, ...deaf } = bench.storage
    const seen = follow(open({ storage: deaf }).subscribe(id))
    await bench.clock.advance(1000)
    // Cancelled and gone before anybody looks again.
    await durably.cancel(id)
    await durably.deleteRun(id)
    await bench.clock.advance(1100)
    expect(typesOf(seen.events)).toEqual(['run:trigger'])
    expect(seen.end).toBe('closed')
  })
})

describe('a subscription that cannot be', () => {
  it('is refused for a run that is not there', async () => {
    const { durably } = work(() => 1)
    for (const id of ['nothing', undefined as never]) {
      await expect(durably.subscribe(id).getReader().read()).rejects.toMatchObject({ code: 'NOT_FOUND' })
    }
  })

  it('is refused for a run of another tenant', async () => {
    const { durably, trigger } = work(() => 1)
    const id = await trigger({}, { tenant: 'theirs' })
    await settled()
    const mine = follow(durably.scoped({ tenant: 'mine' }).subscribe(id))
    const theirs = follow(durably.scoped({ tenant: 'theirs' }).subscribe(id))
    await bench.clock.advance(100)
    expect(mine).toMatchObject({ events: [], end: { code: 'NOT_FOUND' } })
    expect(theirs).toMatchObject({ end: 'closed' })
    expect(theirs.events).toHaveLength(3)
  })

  it('is refused without a history', async () => {
    const { run, durably } = await bench.perform(() => 1)
    const waiting = bench.open().defineJob({ name: 'job', input: anything }, () => 1)
    const { id } = await waiting.trigger({}, { delay: 1000 })
    // This one would have recorded, and nothing was.
    const streams = [durably.subscribe(run.id), durably.subscribe(id), open().subscribe(run.id)]
    const seen = streams.map((stream) => follow(stream))
    await bench.clock.advance(100)
    for (const each of seen) expect(each).toMatchObject({ events: [], end: { code: 'HISTORY_REQUIRED' } })
  })

  it('says so at the end when nobody who worked on the run had a history', async () => {
    const worker = bench.open()
    const job = worker.defineJob({ name: 'job', input: anything }, (ctx) => ctx.run('a', () => 1))
    const { id } = await job.trigger({}, { delay: 1000 })
    const seen = [open().subscribe(id), open().subscribe(id, { after: 3 })].map((stream) => follow(stream))
    await bench.clock.advance(500)
    expect(seen.map(({ end }) => end)).toEqual([null, null])
    worker.start()
    await bench.clock.advance(2000)
    expect((await job.getRun(id))?.status).toBe('completed')
    for (const each of seen) expect(each).toMatchObject({ events: [], end: { code: 'HISTORY_REQUIRED' } })
  })

  it('is refused by a storage that keeps no events', () => {
    const { events: _events, ...storage } = bench.storage
    const durably = bench.open({ storage })
    expect(() => durably.subscribe('x')).toThrow(expect.objectContaining({ code: 'CAPABILITY_MISSING' }))
  })

  it('works in an instance that records nothing itself', async () => {
    const { trigger } = work(() => 1)
    const id = await trigger({}, { delay: 1000 })
    const seen = follow(bench.open().subscribe(id))
    await bench.clock.advance(2000)
    expect(typesOf(seen.events)).toEqual(['run:trigger', 'run:start', 'run:complete'])
  })
})

describe('giving up', () => {
  async function waiting() {
    const { durably, trigger } = work(() => 1)
    const id = await trigger({}, { delay: 3_600_000 })
    const idle = open()
    await bench.clock.advance(1000)
    const timers = bench.clock.pendingTimers()
    return { durably, idle, id, timers }
  }

  it('is what cancel() does, and leaves no timer', async () => {
    const { idle, id, timers } = await waiting()
    const reader = idle.subscribe(id).getReader()
    await reader.read()
    const next = reader.read()
    await settled()
    expect(bench.clock.pendingTimers()).toBe(timers + 1)
    await reader.cancel()
    expect(await next).toEqual({ done: true, value: undefined })
    expect(bench.clock.pendingTimers()).toBe(timers)
  })

  it('is what leaving the loop does', async () => {
    const { idle, id, timers } = await waiting()
    for await (const { type } of idle.subscribe(id)) {
      expect(type).toBe('run:trigger')
      break
    }
    expect(bench.clock.pendingTimers()).toBe(timers)
  })

  it('is what the signal does: its reason is the error', async () => {
    const { idle, id, timers } = await waiting()
    const controller = new AbortController()
    const seen = follow(idle.subscribe(id, { signal: controller.signal }))
    await settled()
    const reason = new Error('enough')
    controller.abort(reason)
    await settled()
    expect(seen.end).toBe(reason)
    expect(bench.clock.pendingTimers()).toBe(timers)
    expect(follow(idle.subscribe(id, { signal: controller.signal }))).toMatchObject({ events: [] })
    const late = follow(idle.subscribe(id, { signal: AbortSignal.abort(reason) }))
    await settled()
    expect(late).toEqual({ events: [], end: reason })
  })

  it('is what closing the instance does, and says so', async () => {
    const { idle, id, timers } = await waiting()
    const seen = follow(idle.subscribe(id))
    await settled()
    await idle.close()
    await settled()
    expect(seen.end).toMatchObject({ code: 'CLOSED' })
    expect(bench.clock.pendingTimers()).toBeLessThanOrEqual(timers)
    await expect(idle.subscribe(id).getReader().read()).rejects.toMatchObject({ code: 'CLOSED' })
  })

  it('is not needed before anybody reads: until then nothing is asked and no timer is set', async () => {
    let looks = 0
    const { trigger } = work(() => 1)
    const id = await trigger({}, { delay: 1000 })
    const reader = open({ storage: beforeTail(() => looks++) })
    // The worker looks once more for the run that it was woken for.
    await settled()
    const timers = bench.clock.pendingTimers()
    reader.subscribe(id)
    await settled()
    expect([looks, bench.clock.pendingTimers()]).toEqual([0, timers])
  })
})

describe('many subscribers', () => {
  it('cost one query a tick, and none when they have gone', async () => {
    const looks: number[] = []
    const { trigger, order } = workToOrder({ concurrency: 5 })
    const ids = await Promise.all(Array.from({ length: 5 }, () => trigger()))
    await settled()
    const storage = beforeTail((cursors) => looks.push(cursors.length))
    const reader = open({ storage })
    const all = ids.flatMap((id) => Array.from({ length: 20 }, () => ({ id, stream: reader.subscribe(id) })))
    const seen = all.map(({ id, stream }) => ({ id, ...{ state: follow(stream) } }))
    await settled()
    expect(looks).toEqual([5])
    await bench.clock.advance(20)
    expect(looks).toEqual([5, 5])
    expect(seen.every(({ state }) => state.events.length === 2)).toBe(true)
    looks.length = 0
    await bench.clock.advance(10_000)
    expect(looks.length).toBeLessThan(15)
    for (let n = 0; n < ids.length; n++) order(0)
    await bench.clock.advance(1000)
    for (const { id, state } of seen) expect(state).toEqual({ events: await reader.getEvents(id), end: 'closed' })
    looks.length = 0
    await bench.clock.advance(10_000)
    expect(looks).toEqual([])
  })

  it('far behind and up to date get what they need from the same queries', async () => {
    const { durably, trigger, order } = workToOrder()
    const id = await trigger()
    order(400)
    await settled()
    const count = (await durably.getEvents(id)).length
    const seen = [0, 1, 50, 99, 400, 700, count].map((after) => ({
      after,
      state: follow(durably.subscribe(id, { after })),
    }))
    await bench.clock.advance(0)
    // No time had to pass for the whole of it.
    for (const { after, state } of seen) expect(state.events).toHaveLength(count - after)
    order(1)
    await bench.clock.advance(50)
    for (const { after, state } of seen) {
      expect(seqsOf(state.events)).toEqual(Array.from({ length: count + 2 - after }, (_, index) => after + 1 + index))
    }
  })

  it('do not wait for the one that is far behind', async () => {
    let looks = 0
    const { durably, trigger, order } = workToOrder()
    const id = await trigger()
    order(800)
    await settled()
    const count = (await durably.getEvents(id)).length
    const reader = open({ storage: beforeTail(() => looks++) })
    const behind = follow(reader.subscribe(id))
    const ahead = reader.subscribe(id, { after: count - 1 }).getReader()
    expect((await ahead.read()).value).toMatchObject({ seq: count })
    expect(looks).toBeLessThanOrEqual(3)
    await bench.clock.advance(0)
    expect(behind.events).toHaveLength(count)
    await ahead.cancel()
  })

  it('are told at once of a burst, with few queries', async () => {
    let looks = 0
    const { trigger, order } = workToOrder()
    const id = await trigger()
    await settled()
    const reader = open({ storage: beforeTail(() => looks++) })
    const seen = follow(reader.subscribe(id))
    await bench.clock.advance(100)
    looks = 0
    for (let n = 0; n < 50; n++) {
      order(1)
      await bench.clock.advance(1)
    }
    await bench.clock.advance(20)
    expect(seen.events).toEqual(await reader.getEvents(id))
    expect(looks).toBeLessThanOrEqual(5)
  })
})

describe('a slow reader', () => {
  it('holds nobody up, and nothing is read for it before it reads on', async () => {
    const asked: unknown[] = []
    const { trigger, order } = workToOrder()
    const id = await trigger()
    await settled()
    const durably = open({ storage: beforeTail((cursors) => asked.push(...cursors)) })
    const slow = durably.subscribe(id).getReader()
    const first = await slow.read()
    const quick = follow(durably.subscribe(id))
    for (let n = 0; n < 30; n++) {
      order(10)
      await bench.clock.advance(100)
    }
    expect(quick.events).toHaveLength(2 + 30 * 20)
    asked.length = 0
    const events = [first.value]
    for (let n = 0; n < 400; n++) events.push((await slow.read()).value)
    // Its own cursor: what it missed is read again, page by page.
    expect(asked).toContainEqual({ runId: id, after: 2 })
    expect(events.map((event) => event?.seq)).toEqual(Array.from({ length: 401 }, (_, index) => index + 1))
    await slow.cancel()
  })
})

describe('trouble of the storage', () => {
  it('does not end a subscription: it goes on where it was, and asks less and less often meanwhile', async () => {
    let isDown = false
    let refused = 0
    const { trigger, order } = workToOrder()
    const id = await trigger()
    await settled()
    const storage = beforeTail(() => {
      if (!isDown) return
      refused += 1
      throw new StorageError('STORAGE_UNAVAILABLE', 'The database is away.')
    })
    const reader = open({ storage })
    const trouble: unknown[] = []
    reader.on('worker:error', ({ during, code }) => trouble.push([during, code]))
    const seen = follow(reader.subscribe(id))
    await bench.clock.advance(100)
    isDown = true
    for (let n = 0; n < 60; n++) {
      if (n % 10 === 0) order(2)
      await bench.clock.advance(1000)
    }
    expect(seen).toMatchObject({ end: null })
    expect(seen.events).toHaveLength(2)
    expect(refused).toBeGreaterThan(5)
    expect(refused).toBeLessThan(40)
    expect(trouble).toContainEqual(['read events', 'STORAGE_UNAVAILABLE'])
    isDown = false
    order(0)
    await bench.clock.advance(6000)
    expect(seen).toEqual({ events: await reader.getEvents(id), end: 'closed' })
  })

  it('does not keep anybody from giving up', async () => {
    const { trigger } = work(() => 1)
    const id = await trigger({}, { delay: 3_600_000 })
    const reader = open({
      storage: beforeTail(() => {
        throw new StorageError('STORAGE_UNAVAILABLE', 'The database is away.')
      }),
    })
    await settled()
    const timers = bench.clock.pendingTimers()
    const controller = new AbortController()
    const seen = follow(reader.subscribe(id, { signal: controller.signal }))
    await bench.clock.advance(3000)
    controller.abort()
    await settled()
    expect(seen.end).toMatchObject({ name: 'AbortError' })
    expect(bench.clock.pendingTimers()).toBe(timers)
  })

  it('that removed events by hand leaves a hole, and no endless loop', async () => {
    let looks = 0
    const { durably, trigger } = work(async (ctx) => {
      for (let n = 0; n < 200; n++) await ctx.run(`${n}`, () => n)
    })
    const id = await trigger()
    await settled()
    const { events } = bench.storage
    const tail: typeof events.tail = async (cursors, limit) => {
      looks += 1
      const tails = await events.tail(cursors, limit)
      return tails.map((each) => ({ ...each, events: each.events.filter(({ seq }) => seq > 250) }))
    }
    const reader = open({ storage: { ...bench.storage, events: { ...events, tail } } })
    const seen = follow(reader.subscribe(id))
    await bench.clock.advance(1000)
    expect(seqsOf(seen.events)).toEqual(seqsOf((await durably.getEvents(id)).slice(250)))
    expect(seen.end).toBe('closed')
    expect(looks).toBeLessThan(20)
  })

  it('that hides events of a run in progress holds nobody else up, and is not asked without end', async () => {
    let looks = 0
    const { trigger, order } = workToOrder()
    const id = await trigger()
    order(200)
    await settled()
    const { events } = bench.storage
    const tail: typeof events.tail = async (cursors, limit) => {
      looks += 1
      const tails = await events.tail(cursors, limit)
      return tails.map((each) => ({ ...each, events: each.events.filter(({ seq }) => seq > 250) }))
    }
    const reader = open({ storage: { ...bench.storage, events: { ...events, tail } } })
    const stuck = follow(reader.subscribe(id))
    const other = follow(reader.subscribe(id, { after: 402 }))
    await bench.clock.advance(1000)
    order(1)
    await bench.clock.advance(3000)
    expect(stuck).toEqual({ events: [], end: null })
    expect(seqsOf(other.events)).toEqual([403, 404])
    expect(looks).toBeLessThan(60)
  })
})

describe('where streams cannot be iterated', () => {
  afterEach(() => void vi.unstubAllGlobals())

  it('this one can', async () => {
    class Plain extends ReadableStream<StoredEvent> {}
    Object.defineProperty(Plain.prototype, Symbol.asyncIterator, { value: undefined, writable: true })
    vi.stubGlobal('ReadableStream', Plain)
    const { durably, trigger } = work(() => 1)
    const id = await trigger()
    await settled()
    const types = []
    for await (const { type } of durably.subscribe(id)) types.push(type)
    expect(types).toEqual(['run:trigger', 'run:start', 'run:complete'])
    await bench.clock.advance(100)
    const stream = durably.subscribe(id)
    for await (const _ of stream) break
    expect(stream.locked).toBe(false)
    const broken = follow(durably.subscribe('nothing'))
    await bench.clock.advance(100)
    expect(broken.end).toMatchObject({ code: 'NOT_FOUND' })
  })
})

describe('any cuts', () => {
  it.each(Array.from({ length: scaled({ quick: 10, full: 1000 }) }, (_, seed) => seed))(
    'put together are the history (seed %i)',
    async (seed) => {
      const random = createRandom(seed)
      const { durably, trigger, order } = workToOrder({ storage: { ...bench.storage } })
      const { watch: _watch, ...deaf } = bench.storage
      const instances = [durably, open({ storage: random.chance(0.5) ? deaf : bench.storage })]
      const id = await trigger()
      const readers = Array.from({ length: random.between(1, 6) }, () => createCutReader())

      function createCutReader() {
        const seen: StoredEvent[] = []
        let reader: ReadableStreamDefaultReader<StoredEvent> | null = null
        let isEnded = false
        async function read(count: number) {
          const after = seen.at(-1)?.seq ?? 0
          const mine = reader ?? (random.pickAny(instances) ?? durably).subscribe(id, { after }).getReader()
          reader = mine
          for (let n = 0; n < count && reader === mine; n++) {
            const { value, done } = await mine.read()
            if (done) isEnded ||= reader === mine
            if (value === undefined || reader !== mine) return
            seen.push(value)
          }
        }
        async function cut() {
          const old = reader
          reader = null
          await old?.cancel()
        }
        return { seen, read, cut, isEnded: () => isEnded }
      }

      for (let turn = random.between(5, 40); turn >= 0; turn--) {
        order(turn === 0 ? 0 : random.pick([0, 1, 2, 7, 40]) || 1)
        for (const reader of readers) {
          if (random.chance(0.2)) await reader.cut()
          if (random.chance(0.7)) void reader.read(random.between(1, 80))
        }
        await bench.clock.advance(random.pick([0, 0, 1, 20, 300, 1500]))
      }
      const all = await durably.getEvents(id)
      for (const reader of readers) {
        await reader.cut()
        void reader.read(all.length + 1)
      }
      await bench.clock.advance(5000)
      for (const reader of readers) {
        expect(reader.seen).toEqual(all)
        expect(reader.isEnded()).toBe(true)
      }
    },
  )
})
