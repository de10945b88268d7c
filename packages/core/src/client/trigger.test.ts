import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { NewRun } from '../storage'
import { type StandardSchema, type Storage, StorageError } from '../index'
import {
  anything,
  type Bench,
  countCalls,
  createBench,
  createFaulty,
  createGate,
  found,
  recordEvents,
  wrapStorage,
} from '../testing/test-bench'
import { settled } from '../testing/fake-clock'

let bench: Bench

beforeEach(() => {
  bench = createBench()
})

afterEach(() => bench.close())

const order = z.object({ id: z.string(), amount: z.number().default(1) })

function shop() {
  const durably = bench.open()
  const ran: string[] = []
  const job = durably.defineJob({ name: 'shop', input: order }, (_ctx, { id }) => void ran.push(id))
  return { durably, job, ran }
}

describe('a trigger while migrate() is under way', () => {
  /** An instance whose tables are there when `made` opens. */
  function unmade() {
    const made = createGate()
    const calls: string[] = []
    const storage = wrapStorage(bench.storage, async (operation, call) => {
      calls.push(operation)
      if (operation === 'migrate') await made.opened
      return call()
    })
    const durably = bench.open({ storage })
    const job = durably.defineJob({ name: 'early', input: anything }, () => 'done')
    return { durably, job, made, calls }
  }

  it('is stored once the tables are made', async () => {
    const { durably, job, made, calls } = unmade()
    const migrated = [durably.migrate(), durably.migrate()]
    const triggered = job.trigger({})
    await settled()
    expect(calls).toEqual(['migrate', 'migrate'])
    made.open()
    expect(await triggered).toMatchObject({ status: 'pending' })
    await Promise.all(migrated)
    expect(calls.at(-1)).toBe('enqueue')
  })

  it('is sent all the same when that fails, and hears what the storage says to it', async () => {
    const { durably, job, made, calls } = unmade()
    const migrated = durably.migrate()
    const triggered = job.trigger({})
    made.fail(new Error('no tables'))
    await expect(migrated).rejects.toThrow('no tables')
    expect(await triggered).toMatchObject({ status: 'pending' })
    expect(calls).toEqual(['migrate', 'enqueue'])
  })
})

async function startsInOrder(durably: ReturnType<typeof shop>['durably']) {
  durably.start()
  await settled()
}

describe('trigger', () => {
  it('stores a pending run and resolves without a worker', async () => {
    const { durably, job } = shop()
    const run = await job.trigger({ id: 'a' })
    expect(run).toMatchObject({
      jobName: 'shop',
      status: 'pending',
      payload: { id: 'a', amount: 1 },
      output: null,
      error: null,
      deduplicated: false,
      attempt: 1,
      crashCount: 0,
      currentStepIndex: 0,
      progress: null,
      idempotencyKey: null,
      concurrencyKey: null,
      tenant: '',
      labels: {},
      startedAt: null,
      finishedAt: null,
      createdAt: '2030-01-01T00:00:00.000Z',
    })
    expect(run.id).toMatch(/^[0-9A-HJKMNP-TV-Z]{26}$/)
    const { deduplicated: _, ...stored } = run
    expect(await durably.getRun(run.id)).toEqual(stored)
  })

  it('stores and hands over what the schema made of the payload', async () => {
    const durably = bench.open()
    const seen: unknown[] = []
    const input = z.object({ at: z.string().transform((text) => text.length), kept: z.boolean().default(true) })
    const job = durably.defineJob({ name: 'parsed', input }, (_ctx, payload) => void seen.push(payload))
    durably.start()
    const run = await job.trigger({ at: 'four', extra: 1 } as { at: string })
    await settled()
    expect(run.payload).toEqual({ at: 4, kept: true })
    expect(seen).toEqual([{ at: 4, kept: true }])
  })

  it('refuses a payload that does not match, with its path, and leaves nothing behind', async () => {
    const { durably, job } = shop()
    const events = recordEvents(durably)
    await expect(job.trigger({ id: 7 } as unknown as { id: string })).rejects.toMatchObject({
      code: 'VALIDATION',
      name: 'ValidationError',
      issues: [{ path: 'id' }],
    })
    expect(await durably.getRuns()).toEqual([])
    expect(events).toEqual([])
  })

  it('names nested paths with dots', async () => {
    const durably = bench.open()
    const input = z.object({ list: z.array(z.object({ name: z.string() })) })
    const job = durably.defineJob({ name: 'nested', input }, () => {})
    await expect(job.trigger({ list: [{ name: 'a' }, {} as { name: string }] })).rejects.toMatchObject({
      issues: [{ path: 'list.1.name' }],
    })
  })

  it('takes schemas that answer later', async () => {
    const durably = bench.open()
    const input = z.object({ id: z.string().refine(async (id) => id !== 'bad', 'is bad') })
    const job = durably.defineJob({ name: 'async', input }, () => {})
    expect((await job.trigger({ id: 'good' })).payload).toEqual({ id: 'good' })
    await expect(job.trigger({ id: 'bad' })).rejects.toMatchObject({ issues: [{ path: 'id', message: 'is bad' }] })
  })

  it('takes any Standard Schema', async () => {
    const upper: StandardSchema<string, string> = {
      '~standard': {
        version: 1,
        vendor: 'own',
        validate: (value) =>
          typeof value === 'string'
            ? { value: value.toUpperCase() }
            : { issues: [{ message: 'no text', path: [{ key: 'x' }] }] },
      },
    }
    const durably = bench.open()
    const job = durably.defineJob({ name: 'own', input: upper }, () => {})
    expect((await job.trigger('abc')).payload).toBe('ABC')
    await expect(job.trigger(1 as unknown as string)).rejects.toMatchObject({
      issues: [{ path: 'x', message: 'no text' }],
    })
  })

  it('starts the run at once in an idle process, without polling', async () => {
    const { durably, job, ran } = shop()
    durably.start()
    await settled()
    await job.trigger({ id: 'a' })
    await settled()
    expect(ran).toEqual(['a'])
  })

  it('hears of a run triggered through another instance by polling', async () => {
    const { durably, ran } = shop()
    const other = bench.open()
    const otherJob = other.defineJob({ name: 'shop', input: order }, () => {})
    durably.start()
    await settled()
    await otherJob.trigger({ id: 'a' })
    await settled()
    await bench.clock.advance(1100)
    expect(ran).toEqual(['a'])
  })

  it.each([
    ['a negative delay', { delay: -1 }],
    ['a delay that is no number', { delay: Number.NaN }],
    ['an endless delay', { delay: Number.POSITIVE_INFINITY }],
    ['delay and runAt', { delay: 1, runAt: new Date() }],
    ['a runAt that is no instant', { runAt: 'soon' }],
    ['an invalid Date', { runAt: new Date(Number.NaN) }],
    ['half a priority', { priority: 1.5 }],
    ['a priority that is no 32-bit integer', { priority: 2 ** 31 }],
    ['a limit of 0', { concurrencyKey: 'k', concurrencyLimit: 0 }],
    ['a limit of 1.5', { concurrencyKey: 'k', concurrencyLimit: 1.5 }],
    ['an idempotency key with NUL', { idempotencyKey: 'a\0b' }],
    ['a concurrency key with half a character', { concurrencyKey: '\ud800' }],
    ['an empty idempotency key', { idempotencyKey: '' }],
    ['an empty concurrency key', { concurrencyKey: '' }],
    ['a key of 513 characters', { idempotencyKey: 'x'.repeat(513) }],
    ['a key that is no string', { idempotencyKey: 5 as unknown as string }],
    ['a tenant that is no string', { tenant: 5 as unknown as string }],
    ['33 labels', { labels: Object.fromEntries(Array.from({ length: 33 }, (_, n) => [`l${n}`, 'x'])) }],
    ['a label that is no string', { labels: { a: 1 as unknown as string } }],
    ['an unknown onConflict', { onConflict: 'ignore' as unknown as 'return' }],
  ])('refuses %s and stores nothing', async (_what, options) => {
    const { durably, job } = shop()
    const outcome = job.trigger({ id: 'a' }, options).then(
      () => ({ code: 'was accepted' }),
      (error: unknown) => error,
    )
    await bench.clock.advance(20_000)
    expect(await outcome).toMatchObject({ code: 'INVALID_OPTION' })
    expect(await durably.getRuns()).toEqual([])
  })
})

describe('an idempotency key', () => {
  it('gives the same run again and says so', async () => {
    const { durably, job } = shop()
    const events = recordEvents(durably, ['run:trigger', 'run:deduplicated'])
    const first = await job.trigger({ id: 'a' }, { idempotencyKey: 'k' })
    const second = await job.trigger({ id: 'a' }, { idempotencyKey: 'k' })
    expect(second.id).toBe(first.id)
    expect([first.deduplicated, second.deduplicated]).toEqual([false, true])
    expect(await job.getRuns()).toHaveLength(1)
    expect(events.map(({ type }) => type)).toEqual(['run:trigger', 'run:deduplicated'])
    expect(events[1]).toMatchObject({ runId: first.id, jobName: 'shop', idempotencyKey: 'k', payloadDiffers: false })
  })

  it('reports a different payload and keeps the first', async () => {
    const { durably, job } = shop()
    const events = recordEvents(durably, ['run:deduplicated'])
    await job.trigger({ id: 'a' }, { idempotencyKey: 'k' })
    const second = await job.trigger({ id: 'b' }, { idempotencyKey: 'k' })
    expect(second.payload).toEqual({ id: 'a', amount: 1 })
    expect(events).toMatchObject([{ payloadDiffers: true }])
  })

  it('belongs to one job', async () => {
    const { durably, job } = shop()
    const other = durably.defineJob({ name: 'other', input: order }, () => {})
    const first = await job.trigger({ id: 'a' }, { idempotencyKey: 'k' })
    const second = await other.trigger({ id: 'a' }, { idempotencyKey: 'k' })
    expect(second).toMatchObject({ deduplicated: false })
    expect(second.id).not.toBe(first.id)
  })

  it('belongs to one tenant', async () => {
    const { job } = shop()
    const first = await job.trigger({ id: 'a' }, { idempotencyKey: 'k', tenant: 'one' })
    const second = await job.trigger({ id: 'a' }, { idempotencyKey: 'k', tenant: 'two' })
    expect(second.deduplicated).toBe(false)
    expect(second.id).not.toBe(first.id)
  })

  it('holds after the run has ended, and is free when the run is deleted', async () => {
    const { durably, job } = shop()
    durably.start()
    const first = await job.trigger({ id: 'a' }, { idempotencyKey: 'k' })
    await settled()
    expect(await job.trigger({ id: 'a' }, { idempotencyKey: 'k' })).toMatchObject({ id: first.id, status: 'completed' })
    await durably.deleteRun(first.id)
    expect(await job.trigger({ id: 'a' }, { idempotencyKey: 'k' })).toMatchObject({ deduplicated: false })
  })

  it('refuses a different payload when asked to', async () => {
    const { job } = shop()
    const first = await job.trigger({ id: 'a' }, { idempotencyKey: 'k' })
    await expect(job.trigger({ id: 'b' }, { idempotencyKey: 'k', onConflict: 'reject' })).rejects.toMatchObject({
      code: 'CONFLICT',
      runId: first.id,
    })
    expect(await job.trigger({ id: 'a' }, { idempotencyKey: 'k', onConflict: 'reject' })).toMatchObject({
      id: first.id,
      deduplicated: true,
    })
  })

  it('takes a payload for the same whatever the order of its keys', async () => {
    const durably = bench.open()
    const events = recordEvents(durably, ['run:deduplicated'])
    const job = durably.defineJob({ name: 'any', input: anything }, () => {})
    const first = await job.trigger({ a: 1, b: [{ x: 1, y: null }] }, { idempotencyKey: 'k' })
    const reject = { idempotencyKey: 'k', onConflict: 'reject' } as const
    const again = await job.trigger({ b: [{ y: null, x: 1 }], a: 1 }, reject)
    expect(again).toMatchObject({ id: first.id, deduplicated: true })
    expect(JSON.stringify(again.payload)).toBe('{"a":1,"b":[{"x":1,"y":null}]}')
    await job.trigger({ b: [{ y: null, x: 1 }], a: 1 }, { idempotencyKey: 'k' })
    expect(events).toMatchObject([{ payloadDiffers: false }, { payloadDiffers: false }])
    const others = [
      { a: 1, b: [{ x: 1, y: null }], c: 1 },
      { a: 1, b: [{ x: 1 }] },
      { a: 1, b: { 0: { x: 1, y: null } } },
      { a: 1 },
      [1],
      null,
      undefined,
    ]
    for (const other of others) {
      await expect(job.trigger(other, reject)).rejects.toMatchObject({ code: 'CONFLICT', status: 'pending' })
    }
  })

  it('takes a list with reordered payloads as a whole, or refuses it as a whole', async () => {
    const job = bench.open().defineJob({ name: 'any', input: anything }, () => {})
    const keyed = (payload: unknown, idempotencyKey: string) => ({
      payload,
      options: { idempotencyKey, onConflict: 'reject' as const },
    })
    await job.trigger({ a: 1, b: 2 }, { idempotencyKey: 'one' })
    const same = [keyed({ b: 2, a: 1 }, 'one'), keyed({ c: 3, d: 4 }, 'two'), keyed({ d: 4, c: 3 }, 'two')]
    const runs = await job.batchTrigger([...same, { payload: 'new' }])
    expect(runs.map(({ deduplicated }) => deduplicated)).toEqual([true, false, true, false])
    expect(JSON.stringify(runs[2]?.payload)).toBe('{"c":3,"d":4}')
    const wrong = job.batchTrigger([{ payload: 'never' }, keyed({ b: 2, a: 1 }, 'one'), keyed({ d: 5, c: 3 }, 'two')])
    await expect(wrong).rejects.toMatchObject({ code: 'CONFLICT', runId: runs[1]?.id })
    expect(await job.getRuns()).toHaveLength(3)
  })

  it('tells the run that has it, and what to do', async () => {
    const { job } = shop()
    const first = await job.trigger({ id: 'a' }, { idempotencyKey: 'k' })
    const reject = { idempotencyKey: 'k', onConflict: 'reject' } as const
    await expect(job.trigger({ id: 'b' }, reject)).rejects.toThrow(
      `The idempotency key "k" of job "shop" belongs to run ${first.id} (pending), which has a different payload. ` +
        "Use another key, or onConflict: 'return'.",
    )
    const twice = [{ id: 'a' }, { id: 'b' }].map((payload) => ({
      payload,
      options: { ...reject, idempotencyKey: 'l' },
    }))
    await expect(job.batchTrigger(twice)).rejects.toThrow('is twice in one list, with different payloads')
  })

  it('has one winner among many callers at once', async () => {
    const { job } = shop()
    const runs = await Promise.all(Array.from({ length: 50 }, () => job.trigger({ id: 'a' }, { idempotencyKey: 'k' })))
    expect(new Set(runs.map(({ id }) => id)).size).toBe(1)
    expect(runs.filter(({ deduplicated }) => !deduplicated)).toHaveLength(1)
  })

  it('goes together with a concurrency key', async () => {
    const { job } = shop()
    const run = await job.trigger({ id: 'a' }, { idempotencyKey: 'i', concurrencyKey: 'c' })
    expect(run).toMatchObject({ idempotencyKey: 'i', concurrencyKey: 'c', concurrencyLimit: 1 })
  })
})

describe('the time of a start', () => {
  it('is not before the delay is over, and then at once', async () => {
    const { durably, job, ran } = shop()
    durably.start()
    const run = await job.trigger({ id: 'a' }, { delay: 10_500 })
    expect(run.availableAt).toBe('2030-01-01T00:00:10.500Z')
    await bench.clock.advance(10_499)
    expect(ran).toEqual([])
    await bench.clock.advance(1)
    expect(ran).toEqual(['a'])
  })

  it('is not before runAt, given as a Date or as text', async () => {
    const { durably, job, ran } = shop()
    durably.start()
    await job.trigger({ id: 'date' }, { runAt: new Date(bench.clock.now() + 5000) })
    await job.trigger({ id: 'text' }, { runAt: '2030-01-01T00:00:07Z' })
    await bench.clock.advance(4999)
    expect(ran).toEqual([])
    await bench.clock.advance(1)
    expect(ran).toEqual(['date'])
    await bench.clock.advance(2000)
    expect(ran).toEqual(['date', 'text'])
  })

  it('is now when runAt is past', async () => {
    const { durably, job, ran } = shop()
    durably.start()
    await job.trigger({ id: 'a' }, { runAt: '2001-01-01T00:00:00Z' })
    await settled()
    expect(ran).toEqual(['a'])
  })

  it.each([
    ['a delay', { delay: Number.MAX_SAFE_INTEGER }],
    ['an instant', { runAt: '+010000-01-01T00:00:00.000Z' }],
  ])('is never now when %s goes beyond the year 9999', async (_what, options) => {
    const { durably, job, ran } = shop()
    durably.start()
    await job.trigger({ id: 'a' }, options).catch(() => {})
    await bench.clock.advance(2000)
    expect(ran).toEqual([])
  })

  it('keeps an order of its own: priority, then due time, then the order of triggers in the same millisecond', async () => {
    const { durably, job, ran } = shop()
    for (const id of ['1', '2', '3', '4', '5']) await job.trigger({ id })
    await job.trigger({ id: 'low' }, { priority: -1 })
    await job.trigger({ id: 'high' }, { priority: 10 })
    await job.trigger({ id: 'past' }, { runAt: '2029-01-01T00:00:00Z' })
    await startsInOrder(durably)
    expect(ran).toEqual(['high', '1', '2', '3', '4', '5', 'past', 'low'])
  })
})

describe('batchTrigger', () => {
  it('stores all in one call and answers in their order', async () => {
    const counted = countCalls(bench.storage)
    const durably = bench.open({ storage: counted.storage })
    const job = durably.defineJob({ name: 'shop', input: order }, () => {})
    const runs = await job.batchTrigger(Array.from({ length: 100 }, (_, n) => ({ payload: { id: `${n}` } })))
    expect(runs.map(({ payload }) => (payload as { id: string }).id)).toEqual(
      Array.from({ length: 100 }, (_, n) => `${n}`),
    )
    expect(counted.calls).toEqual({ enqueue: 1 })
  })

  it('runs in the order of the items', async () => {
    const { durably, job, ran } = shop()
    await job.batchTrigger(['c', 'a', 'b'].map((id) => ({ payload: { id } })))
    await startsInOrder(durably)
    expect(ran).toEqual(['c', 'a', 'b'])
  })

  it('takes options with each item', async () => {
    const { job } = shop()
    const runs = await job.batchTrigger([
      { payload: { id: 'a' }, options: { idempotencyKey: 'k', labels: { team: 'x' } } },
      { payload: { id: 'b' }, options: { idempotencyKey: 'k' } },
      { payload: { id: 'c' }, options: { priority: 3 } },
    ])
    expect(runs).toMatchObject([
      { deduplicated: false, labels: { team: 'x' } },
      { deduplicated: true },
      { priority: 3 },
    ])
    expect(runs[1]?.id).toBe(runs[0]?.id)
  })

  it('stores nothing when one payload is bad', async () => {
    const { durably, job } = shop()
    const items = [{ payload: { id: 'a' } }, { payload: { id: 1 as unknown as string } }]
    await expect(job.batchTrigger(items)).rejects.toMatchObject({ code: 'VALIDATION' })
    expect(await durably.getRuns()).toEqual([])
  })

  it('stores nothing when one idempotency key is refused', async () => {
    const { job } = shop()
    await job.trigger({ id: 'a' }, { idempotencyKey: 'k' })
    const items = [
      { payload: { id: 'b' } },
      { payload: { id: 'c' }, options: { idempotencyKey: 'k', onConflict: 'reject' as const } },
    ]
    await expect(job.batchTrigger(items)).rejects.toMatchObject({ code: 'CONFLICT' })
    expect(await job.getRuns()).toHaveLength(1)
  })

  it('does nothing with nothing', async () => {
    const counted = countCalls(bench.storage)
    const job = bench.open({ storage: counted.storage }).defineJob({ name: 'shop', input: order }, () => {})
    expect(await job.batchTrigger([])).toEqual([])
    expect(counted.calls).toEqual({})
  })
})

describe('a trigger whose storage is in trouble', () => {
  it('stores one run when the answer is lost', async () => {
    const faulty = createFaulty(bench.storage)
    const durably = bench.open({ storage: faulty.storage })
    const job = durably.defineJob({ name: 'shop', input: order }, () => {})
    const events = recordEvents(durably, ['run:trigger', 'run:deduplicated'])
    faulty.loseAnswer('enqueue')
    const triggering = job.trigger({ id: 'a' }, { idempotencyKey: 'k' })
    await bench.clock.advance(5000)
    const run = await triggering
    expect(run.deduplicated).toBe(false)
    expect((await durably.getRuns()).map(({ id }) => id)).toEqual([run.id])
    expect(events.map(({ type }) => type)).toEqual(['run:trigger'])
  })

  it('tries again under the same id', async () => {
    const sent: string[][] = []
    let failures = 2
    const storage: Storage = {
      ...bench.storage,
      async enqueue(runs: readonly NewRun[]) {
        sent.push(runs.map(({ id }) => id))
        if (failures-- > 0) throw new Error('socket hang up')
        return bench.storage.enqueue(runs)
      },
    }
    const job = bench.open({ storage }).defineJob({ name: 'shop', input: order }, () => {})
    const triggering = job.trigger({ id: 'a' })
    await bench.clock.advance(20_000)
    const { id } = await triggering
    expect(sent).toEqual([[id], [id], [id]])
  })

  it('rejects with UNKNOWN_OUTCOME after a bounded number of tries', async () => {
    const counted = countCalls(bench.storage)
    const faulty = createFaulty(bench.storage)
    faulty.fail('enqueue')
    const storage = wrapStorage(faulty.storage, (operation, call) => {
      counted.calls[operation] = (counted.calls[operation] ?? 0) + 1
      return call()
    })
    const job = bench.open({ storage }).defineJob({ name: 'shop', input: order }, () => {})
    const outcome = job.trigger({ id: 'a' }).catch((error: unknown) => error)
    await bench.clock.advance(60_000)
    expect(await outcome).toMatchObject({ code: 'UNKNOWN_OUTCOME' })
    expect(found(counted.calls.enqueue)).toBeLessThan(20)
  })

  it.each([
    ['no try reached the database', [false, false, false, false], 'STORAGE_UNAVAILABLE'],
    ['any of them may have', [false, true, false, false], 'UNKNOWN_OUTCOME'],
  ])('rejects with what is known when %s', async (_name, arrivals, code) => {
    const tries = [...arrivals]
    const storage: Storage = {
      ...bench.storage,
      async enqueue() {
        const mayHaveArrived = tries.shift() ?? false
        throw new StorageError('STORAGE_UNAVAILABLE', 'The database is away.', { mayHaveArrived })
      },
    }
    const job = bench.open({ storage }).defineJob({ name: 'shop', input: order }, () => {})
    const outcome = job.trigger({ id: 'a' }).catch((error: unknown) => error)
    await bench.clock.advance(60_000)
    expect(await outcome).toMatchObject({ code })
    expect(tries).toEqual([])
  })
})

describe('values no schema stops', () => {
  it('are refused by name and path before anything is stored', async () => {
    const durably = bench.open()
    const job = durably.defineJob({ name: 'any', input: anything }, () => {})
    await expect(job.trigger({ list: [1, { at: new Date() }] })).rejects.toMatchObject({
      code: 'SERIALIZATION',
      path: 'list[1].at',
      message: expect.stringContaining('The payload of job "any"'),
    })
    const since = z.object({ since: z.coerce.date() as unknown as z.ZodString })
    const dated = durably.defineJob({ name: 'dated', input: since }, () => {})
    await expect(dated.trigger({ since: '2030-01-01' })).rejects.toThrow(
      'The payload of job "dated" at since: an instance of Date cannot be stored as JSON. ' +
        'Store its ISO text, date.toISOString(), and make the Date where it is used.',
    )
    expect(await durably.getRuns()).toEqual([])
  })

  it('do not change with the object that was passed', async () => {
    const durably = bench.open()
    const gate = createGate()
    const slow: StandardSchema = {
      '~standard': { version: 1, vendor: 'own', validate: (value) => ({ value }) },
    }
    const seen: unknown[] = []
    const job = durably.defineJob({ name: 'any', input: slow }, async (_ctx, payload) => {
      await gate.opened
      seen.push(payload)
    })
    durably.start()
    const payload = { n: 1 }
    await job.trigger(payload)
    payload.n = 2
    gate.open()
    await settled()
    expect(seen).toEqual([{ n: 1 }])
  })
})
