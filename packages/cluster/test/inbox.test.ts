import { createDurably, defineJob, type Durably, type JobOptions, type MessageWishes } from '@coji/durably-core'
import { createMemoryStorage } from '@coji/durably-core/memory'
import type { Storage } from '@coji/durably-core/storage'
import { createFakeClock, type FakeClock } from '@coji/durably-core/testing'
import { describe, expect, it } from 'vitest'
import { createInbox, type Inbox } from '../src/index'
import { at, DAY, HOUR, MINUTE, schemaOf, START } from './stage'

interface Post {
  readonly clock: FakeClock
  readonly storage: Storage
  readonly durably: Durably
  readonly inbox: Inbox
  /** What the jobs got, in order. */
  readonly got: unknown[]
  readonly told: unknown[]
}

interface PostOptions {
  readonly clock?: FakeClock
  readonly storage?: Storage
  /** Jobs by their names, and what they want. */
  readonly jobs?: Readonly<Record<string, MessageWishes>>
  /** Each payload needs a text `for`. */
  readonly isStrict?: boolean
}

function post({ clock = createFakeClock(START), storage: given, jobs = {}, isStrict }: PostOptions = {}): Post {
  const storage = given ?? createMemoryStorage({ now: () => clock.now() })
  const environment = { clock, random: () => 0.5 }
  const durably = createDurably({ storage, logger: null, pollingInterval: HOUR, environment })
  const got: unknown[] = []
  for (const [name, on] of Object.entries(jobs)) {
    durably.defineJob({ name, on, input: schemaOf<unknown>(isStrict) }, async (_ctx, payload) => {
      got.push([name, payload])
    })
  }
  const told: unknown[] = []
  for (const type of ['inbox:published', 'inbox:delivered', 'inbox:unwanted', 'inbox:refused'] as const) {
    durably.on(type, ({ timestamp: _timestamp, sequence: _sequence, ...event }) => void told.push(event))
  }
  return { clock, storage, durably, inbox: createInbox(durably, { pollingInterval: MINUTE }), got, told }
}

async function deliver({ inbox, durably }: Post): Promise<number> {
  const { delivered } = await inbox.drain()
  await durably.runUntilIdle()
  return delivered
}

describe('a message', () => {
  it('is a run of each job that wants it', async () => {
    const own = post({ jobs: { welcome: 'user.created', count: ['user.created', 'user.left'], other: 'order.paid' } })
    own.durably.start()
    const { id, deduplicated } = await own.durably.publish({ type: 'user.created', payload: { id: 7 } })
    expect(deduplicated).toBe(false)
    await own.clock.advance(0)
    expect(own.got).toEqual(
      expect.arrayContaining([
        ['welcome', { id: 7 }],
        ['count', { id: 7 }],
      ]),
    )
    expect(own.got.length).toBe(2)
    expect(own.told).toEqual([
      { type: 'inbox:published', messageId: id, messageType: 'user.created', tenant: '' },
      { type: 'inbox:delivered', messageId: id, messageType: 'user.created', tenant: '', runs: 2 },
    ])
    expect(await own.inbox.list()).toMatchObject([{ id, type: 'user.created', payload: { id: 7 }, wanted: 2 }])
    await own.durably.close()
  })

  it('is for those who want such a payload', async () => {
    const jobs = {
      pro: { type: 'user.created', where: { 'user.plan': 'pro', 'user.isTest': false } },
      nobody: { type: 'user.created', where: { 'user.plan.name': 'pro' } },
    }
    const own = post({ jobs })
    for (const [plan, isTest] of [
      ['pro', false],
      ['pro', true],
      ['free', false],
    ] as const) {
      await own.durably.publish({ type: 'user.created', payload: { user: { plan, isTest } } })
    }
    await own.durably.publish({ type: 'user.created' })
    expect(await deliver(own)).toBe(4)
    expect(own.got).toEqual([['pro', { user: { plan: 'pro', isTest: false } }]])
  })

  it('comes once under one dedupe key', async () => {
    const own = post({ jobs: { welcome: 'hello' } })
    const first = await own.durably.publish({ type: 'hello', payload: 1, dedupeKey: 'k' })
    expect(await own.durably.publish({ type: 'hello', payload: 2, dedupeKey: 'k' })).toEqual({
      ...first,
      deduplicated: true,
    })
    await deliver(own)
    expect(await own.durably.publish({ type: 'hello', payload: 3, dedupeKey: 'k' })).toMatchObject({
      deduplicated: true,
    })
    await own.durably.publish({ type: 'hello', payload: 4, dedupeKey: 'k', tenant: 'acme' })
    await deliver(own)
    expect(own.got).toEqual([
      ['welcome', 1],
      ['welcome', 4],
    ])
    expect(await own.durably.getRuns({ tenant: 'acme' })).toMatchObject([{ payload: 4 }])
  })

  it('is delivered in the order of publishing, or when its time has come', async () => {
    const own = post({ jobs: { a: 'x' } })
    own.durably.start()
    await own.durably.publish({ type: 'x', payload: 'late', at: at(HOUR) })
    await own.durably.publish({ type: 'x', payload: 'later', delay: 2 * HOUR })
    for (let n = 0; n < 5; n++) await own.durably.publish({ type: 'x', payload: n })
    await own.clock.advance(MINUTE)
    expect(own.got.map((each) => (each as unknown[])[1])).toEqual([0, 1, 2, 3, 4])
    await own.clock.advance(HOUR)
    expect(own.got.at(-1)).toEqual(['a', 'late'])
    await own.clock.advance(HOUR)
    expect(own.got.at(-1)).toEqual(['a', 'later'])
    await own.durably.close()
  })

  it('that nobody wants is kept and counted, and may be sent out anew', async () => {
    const own = post()
    const { id } = await own.durably.publish({ type: 'x', payload: 1 })
    await deliver(own)
    expect(await own.inbox.counts()).toEqual({ waiting: 0, processed: 1, unwanted: 1 })
    expect(own.told.at(-1)).toMatchObject({ type: 'inbox:unwanted', messageId: id })
    const later = post({ clock: own.clock, storage: own.storage, jobs: { a: 'x' } })
    expect(await later.inbox.replay({ unwanted: true, type: 'x', from: at(-1), before: at(1) })).toBe(1)
    await deliver(later)
    expect(later.got).toEqual([['a', 1]])
    expect(await later.inbox.counts()).toEqual({ waiting: 0, processed: 1, unwanted: 0 })
  })

  it('that is sent out anew is a new run of each job', async () => {
    const own = post({ jobs: { a: 'x' } })
    await own.durably.publish({ type: 'x' })
    await deliver(own)
    expect(await own.inbox.replay({ type: ['x', 'y'] })).toBe(1)
    await deliver(own)
    expect(own.got.length).toBe(2)
  })

  it('that a schema refuses is no run, and somebody is told', async () => {
    const own = post({ jobs: { a: 'x' }, isStrict: true })
    await own.durably.publish({ type: 'x', payload: {} })
    await own.durably.publish({ type: 'x', payload: { for: 'you' } })
    expect(await deliver(own)).toBe(2)
    expect(own.got).toEqual([['a', { for: 'you' }]])
    expect(own.told).toContainEqual(
      expect.objectContaining({ type: 'inbox:refused', jobName: 'a', messageIds: [expect.any(String)] }),
    )
    expect(await own.inbox.counts()).toMatchObject({ processed: 2, unwanted: 0 })
  })

  it('is delivered to jobs of other processes', async () => {
    const first = post({ jobs: { a: 'x' }, isStrict: true })
    await first.inbox.drain()
    const { clock, storage } = first
    const other = post({ clock, storage, jobs: { b: 'x' } })
    await other.durably.publish({ type: 'x', payload: 'anything' })
    await deliver(other)
    expect(other.got).toEqual([['b', 'anything']])
    await first.durably.runUntilIdle()
    expect(first.got).toEqual([['a', 'anything']])
  })

  it('is delivered to a job that the code defines while it works', async () => {
    const own = post({ jobs: { early: 'x' } })
    own.durably.start()
    await own.durably.publish({ type: 'y', payload: 1 })
    await own.clock.advance(0)
    expect(await own.inbox.counts()).toMatchObject({ unwanted: 1 })
    own.durably.defineJob({ name: 'late', on: 'y', input: schemaOf<unknown>() }, async (_ctx, payload) => {
      own.got.push(['late', payload])
    })
    await own.durably.publish({ type: 'y', payload: 2 })
    await own.clock.advance(0)
    expect(own.got).toEqual([['late', 2]])
    await own.durably.close()
  })

  it('is no longer wanted by a job whose code does not want it any more', async () => {
    const own = post({ jobs: { a: 'x' } })
    await own.inbox.drain()
    const later = post({ clock: own.clock, storage: own.storage, jobs: { a: 'y' } })
    await later.durably.publish({ type: 'x' })
    await deliver(later)
    expect(await later.inbox.counts()).toMatchObject({ unwanted: 1 })
  })

  it('is no longer wanted by a job that somebody has had forgotten', async () => {
    const first = post({ jobs: { gone: ['x', 'y'], stays: 'x' } })
    await first.inbox.drain()
    await expect(first.inbox.forget('gone')).rejects.toMatchObject({ code: 'CONFLICT' })
    const later = post({ clock: first.clock, storage: first.storage, jobs: { stays: 'x' } })
    await later.inbox.forget('gone')
    for (const type of ['x', 'y']) await later.durably.publish({ type })
    await deliver(later)
    expect((await later.durably.getRuns()).map(({ jobName }) => jobName)).toEqual(['stays'])
    expect(await later.inbox.counts()).toMatchObject({ unwanted: 1 })
  })

  it('is removed when it is old', async () => {
    const own = post({ jobs: { a: 'x' } })
    await own.durably.publish({ type: 'x', dedupeKey: 'k' })
    await deliver(own)
    await own.clock.stall(29 * DAY)
    await own.inbox.drain()
    expect((await own.inbox.list()).length).toBe(1)
    await own.clock.stall(2 * DAY)
    await own.durably.publish({ type: 'y' })
    await own.inbox.drain()
    expect((await own.inbox.list()).map(({ type }) => type)).toEqual(['y'])
    await expect(own.inbox.purge({} as never)).rejects.toThrow('olderThan must be a number of milliseconds from 0')
    expect(await own.inbox.purge({ olderThan: 0 })).toBe(1)
  })

  const BAD_FILTERS = [
    [{ type: 5 }, 'type 1 must be a string'],
    [{ type: null }, 'type 1 must be a string'],
    [{ type: ['x', 'a\0b'] }, 'type 2 contains NUL'],
    [{ tenant: 'a\0b' }, 'tenant contains NUL'],
    [{ from: 'yesterday' }, 'from must be a Date'],
    [{ before: 'yesterday' }, 'before must be a Date'],
    [{ unwanted: 'x' }, 'unwanted must be'],
    [{ limits: 1 }, 'knows no option "limits"'],
  ] as const

  it.each([
    ...BAD_FILTERS,
    [{ limit: 0 }, 'limit must be'],
    [{ limit: Number.NaN }, 'limit must be'],
    [{ after: null }, 'after must be the last one of the page before'],
    [{ after: { id: 'a\0b', createdAt: at(0) } }, 'id of after contains NUL'],
    [{ after: { id: 'x', createdAt: 'yesterday' } }, 'createdAt of after must be a Date'],
  ] as const)('is not listed by what is no condition: %j', async (filter, expected) => {
    await expect(post().inbox.list(filter as never)).rejects.toThrow(expected)
  })

  it.each([...BAD_FILTERS, [{ limit: 1 }, 'knows no option "limit"']] as const)(
    'is not sent out anew by what is no condition: %j',
    async (filter, expected) => {
      await expect(post().inbox.replay(filter as never)).rejects.toThrow(expected)
    },
  )

  it.each([
    [{ tenant: 'a\0b' }, 'tenant contains NUL'],
    [{ tenant: null }, 'tenant must be a string'],
    [{ type: 'x' }, 'knows no option "type"'],
  ] as const)('is not counted by what is no condition: %j', async (scope, expected) => {
    await expect(post().inbox.counts(scope as never)).rejects.toThrow(expected)
  })

  it.each([
    ['a\0b', 'contains NUL'],
    [5, 'must be a string'],
    [undefined, 'must be a string'],
  ])('is not forgotten by what is no name of a job: %j', async (name, expected) => {
    await expect(post().inbox.forget(name as never)).rejects.toThrow(`The name of a job ${expected}`)
  })

  it('of a tenant is published by its scope', async () => {
    const own = post({ jobs: { a: 'x' } })
    await own.durably.scoped({ tenant: 'acme' }).publish({ type: 'x', payload: 1 })
    await deliver(own)
    expect(await own.durably.getRuns({ tenant: 'acme' })).toMatchObject([{ payload: 1 }])
    expect(await own.inbox.counts({ tenant: 'other' })).toMatchObject({ processed: 0 })
    const forged = own.durably.scoped({ tenant: 'acme' }).publish({ type: 'x', tenant: 'other' } as never)
    await expect(forged).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })

  it.each([
    [{}, 'needs a type'],
    [{ type: '' }, 'type'],
    [{ type: 'x', payload: () => {} }, 'payload'],
    [{ type: 'x', dedupeKey: '' }, 'dedupeKey'],
    [{ type: 'x', at: 'soon' }, 'at must be'],
    [{ type: 'x', delay: -1 }, 'delay'],
    [{ type: 'x', at: at(1), delay: 1 }, 'either'],
    [{ type: 'x', dedupe: 'k' }, 'dedupeKey'],
    [{ type: 'x', transaction: {} }, 'transaction'],
  ])('that makes no sense is refused, and nothing is stored: %o', async (message, expected) => {
    const own = post()
    await expect(own.durably.publish(message as never)).rejects.toThrow(expected)
    expect(await own.inbox.list()).toEqual([])
  })

  it('is repeated under its id while the storage is in trouble', async () => {
    const own = post({ jobs: { a: 'x' } })
    const inbox = own.storage.cluster?.inbox
    if (inbox === undefined) throw new Error('There is no inbox.')
    const { publish } = inbox
    let isLost = true
    Object.assign(inbox, {
      async publish(...params: Parameters<typeof publish>) {
        const answer = await publish(...params)
        if (!isLost) return answer
        isLost = false
        throw new Error('the answer was lost')
      },
    })
    const published = own.durably.publish({ type: 'x' })
    await own.clock.advance(MINUTE)
    expect(await published).toMatchObject({ deduplicated: false })
    await deliver(own)
    expect(own.got.length).toBe(1)
  })
})

describe('what a job wants', () => {
  it.each([
    [{ type: 'x', wher: {} }, 'Did you mean "where"?'],
    [['x', 'x'], 'twice'],
    ['', 'on of'],
    [{ where: {} }, 'needs the type'],
    [{ type: 'x', where: { a: [] } }, '"a" must be'],
  ])('is refused when it makes no sense: %o', (on, expected) => {
    expect(() => defineJob({ name: 'a', input: schemaOf<unknown>(), on: on as never }, async () => {})).toThrow(
      expected,
    )
  })
})

it('two inboxes on one storage deliver each message once', async () => {
  const first = post({ jobs: { a: 'x' } })
  const { clock, storage } = first
  const second = post({ clock, storage, jobs: { a: 'x' } })
  first.durably.start()
  second.durably.start()
  for (let n = 0; n < 40; n++) {
    await first.durably.publish({ type: 'x', payload: n })
    await clock.advance(MINUTE)
    if (n === 20) await first.durably.stop()
  }
  await clock.advance(MINUTE)
  const payloads = (await second.durably.getRuns()).map(({ payload }) => payload).sort((a, b) => Number(a) - Number(b))
  expect(payloads).toEqual(Array.from({ length: 40 }, (_, n) => n))
  await second.durably.close()
})

describe('a job that gathers messages', () => {
  /** One process with one job, of which the payloads of its runs are kept. */
  function gathering(options: Pick<JobOptions<string, unknown, unknown>, 'debounce' | 'batch'>, isStrict = false) {
    const own = post()
    own.durably.defineJob(
      { name: 'a', on: 'x', input: schemaOf<unknown>(isStrict), ...options },
      async (_ctx, payload) => {
        own.got.push(payload)
      },
    )
    own.durably.start()
    return own
  }

  it('gets one run after the last of several', async () => {
    const own = gathering({ debounce: 10_000 })
    for (let n = 0; n < 5; n++) {
      await own.durably.publish({ type: 'x', payload: n })
      await own.clock.advance(8000)
    }
    expect(own.got).toEqual([])
    await own.clock.advance(2000)
    expect(own.got).toEqual([4])
    await own.durably.publish({ type: 'x', payload: 'later' })
    await own.clock.advance(10_000)
    expect(own.got).toEqual([4, 'later'])
    await own.durably.close()
  })

  it('tells them apart by a value in the payload, and by tenant', async () => {
    const own = gathering({ debounce: { wait: 10_000, key: 'user.id' } })
    for (const [id, n] of [
      [1, 1],
      [2, 2],
      [1, 3],
    ])
      await own.durably.publish({ type: 'x', payload: { user: { id }, n } })
    await own.durably.publish({ type: 'x', payload: { user: { id: 1 }, n: 4 }, tenant: 'acme' })
    await own.clock.advance(10_000)
    expect(own.got.map((payload) => (payload as { n: number }).n).sort()).toEqual([2, 3, 4])
    await own.durably.close()
  })

  it('gets one run with the list, when there are enough or some time after the first', async () => {
    const own = gathering({ batch: { max: 3, within: MINUTE } })
    for (let n = 0; n < 7; n++) await own.durably.publish({ type: 'x', payload: n })
    await own.clock.advance(1000)
    expect(own.got).toEqual([
      [0, 1, 2],
      [3, 4, 5],
    ])
    await own.clock.advance(MINUTE)
    expect(own.got.at(-1)).toEqual([6])
    expect(await own.inbox.counts()).toEqual({ waiting: 0, processed: 7, unwanted: 0 })
    await own.durably.close()
  })

  it('gets several runs when one has no room for all that was gathered', async () => {
    const own = gathering({ batch: { max: 5, within: MINUTE } })
    // Two of them and what is around them have one byte more than a run has room for, two of the others just as many.
    const large = 2 ** 19 - 3
    const lengths = [large, large, large - 1, large, 2 ** 20 - 4]
    for (const length of lengths) await own.durably.publish({ type: 'x', payload: 'x'.repeat(length) })
    await own.clock.advance(1000)
    expect(own.got.map((list) => (list as string[]).map(({ length }) => length))).toEqual([
      [large],
      [large, large - 1],
      [large],
      [2 ** 20 - 4],
    ])
    expect(own.told).not.toContainEqual(expect.objectContaining({ type: 'inbox:refused' }))
    await own.durably.close()
  })

  it('gets none when its schema refuses what was gathered, and somebody is told', async () => {
    const own = gathering({ batch: { max: 1, within: 0 } }, true)
    const { id } = await own.durably.publish({ type: 'x', payload: 1 })
    await own.clock.advance(1000)
    expect(own.told.at(-1)).toMatchObject({ type: 'inbox:refused', jobName: 'a', messageIds: [id] })
    expect(await own.durably.getRuns()).toEqual([])
    await own.durably.close()
  })

  it.each([{ debounce: 1 }, { batch: { max: 1, within: 1 } }, {}])(
    'gets a run of its version and its timeout from a process that does not know it: %o',
    async (options) => {
      const own = post()
      const job = { name: 'a', on: 'x', input: schemaOf<unknown>(), version: '2', timeout: 5000, ...options } as const
      own.durably.defineJob(job as never, async () => {})
      await own.inbox.drain()
      const other = post({ clock: own.clock, storage: own.storage })
      await other.durably.publish({ type: 'x', payload: 1 })
      await other.inbox.drain()
      await own.clock.stall(MINUTE)
      await other.inbox.drain()
      const [run] = await own.storage.getRuns({})
      expect(run).toMatchObject({ jobName: 'a', jobVersion: '2', timeoutMs: 5000 })
    },
  )

  it('goes on where another process stopped', async () => {
    const own = gathering({ debounce: MINUTE })
    await own.durably.publish({ type: 'x', payload: 1 })
    await own.clock.advance(1000)
    await own.durably.stop()
    const other = post({ clock: own.clock, storage: own.storage })
    await own.clock.stall(MINUTE)
    await other.inbox.drain()
    await own.durably.runUntilIdle()
    expect(own.got).toEqual([1])
  })

  it.each([
    [{ debounce: 1, batch: { max: 1, within: 1 } }, 'one of them'],
    [{ debounce: -1 }, 'debounce of Job "a" must be'],
    [{ debounce: { ms: 1 } }, 'knows no option "ms"'],
    [{ batch: { max: 0, within: 1 } }, 'from 1 to 1000'],
    [{ batch: { max: 1 } }, 'within of batch'],
    [{ batch: { max: 1, within: 1, key: '' } }, 'must not be empty'],
  ])('is refused when that makes no sense: %o', (options, expected) => {
    const given = { name: 'a', input: schemaOf<unknown>(), on: 'x', ...options }
    expect(() => defineJob(given as never, async () => {})).toThrow(expected)
  })
})
