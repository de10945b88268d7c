import { createDurably, declareJob, defineJob, UnknownOutcomeError, type StoredEvent } from '@coji/durably-core'
import { createMemoryStorage } from '@coji/durably-core/memory'
import { withLogPersistence } from '@coji/durably-plugins'
import fc from 'fast-check'
import { afterEach, describe, expect, expectTypeOf, it, vi } from 'vitest'
import { z } from 'zod'
import { createDurablyHandler, type DurablyHandler } from '../src'
import { createDurablyClient, ServerError, UnreachableError, type RunChange } from '../src/client'
import { openApi, type ApiOptions } from './api'
import { described } from './described'

const jobs = {
  resize: defineJob(
    { name: 'resize-image', input: z.object({ width: z.number() }), output: z.number() },
    (_ctx, p) => p.width,
  ),
  mail: declareJob({ name: 'send-mail', input: z.object({ to: z.string() }) }),
}

const URL_OF_APP = 'http://app.test'

function clientOf(handler: DurablyHandler) {
  return createDurablyClient<typeof jobs>({ url: URL_OF_APP, fetch: handler })
}

function openWithJobs(options: ApiOptions = {}) {
  const api = openApi(options)
  api.durably.register(jobs)
  return { ...api, client: clientOf(api.handler) }
}

afterEach(() => {
  vi.useRealTimers()
})

it('has the types of the jobs', async () => {
  const { client, durably } = openWithJobs()
  const run = await client.trigger('resize-image', { width: 3 })
  await durably.runUntilIdle()
  if (run.status === 'completed') expectTypeOf(run.output).toEqualTypeOf<number>()
  expect(await client.getRun(run.id)).toMatchObject({ output: 3 })
  // @ts-expect-error: no such job
  await client.trigger('resize', { width: 3 })
  // @ts-expect-error: not what the job takes
  await expect(client.trigger('resize-image', { height: 3 })).rejects.toThrow('width')
  const untyped = createDurablyClient({ url: URL_OF_APP, fetch: (request) => openWithJobs().handler(request) })
  await untyped.trigger('anything', 1)
})

it('sends headers of its own with each request, asked for each time', async () => {
  let token = 'one'
  const seen: (string | null)[] = []
  const { handler } = openWithJobs({
    authorize: ({ request }) => {
      seen.push(request.headers.get('authorization'))
      return { tenant: null, actor: 'me', allow: 'all' }
    },
  })
  const client = createDurablyClient({
    url: `${URL_OF_APP}/`,
    fetch: handler,
    headers: async () => ({ authorization: token }),
  })
  expect(await client.me()).toMatchObject({ actor: 'me', tenant: null })
  token = 'two'
  await client.trigger('resize-image', { width: 1 })
  expect(seen).toEqual(['one', 'two'])
})

it('does something to many runs, and lists what waits for people and which jobs there are', async () => {
  const { client, durably } = openWithJobs()
  for (let n = 0; n < 3; n++) await client.trigger('resize-image', { width: n }, { delay: 3_600_000 })
  const filter = { jobName: 'resize-image', createdBefore: new Date('2999-01-01') }
  expect(await client.previewBulk('cancel', filter)).toEqual({ count: 3, isMore: false })
  const { counts, upTo } = await client.countRuns({ jobName: 'resize-image' })
  expect({ pending: counts.pending, upTo }).toEqual({ pending: 3, upTo: 1000 })
  expect(await client.counts({ jobName: 'resize-image' })).toEqual(counts)
  expect(counts).not.toHaveProperty('upTo')
  const { id } = await client.bulk('cancel', filter)
  await durably.runUntilIdle()
  expect(await client.wait(id)).toEqual({ id, output: { done: 3, skipped: 0 } })
  expect(await client.waits({ limit: 10 })).toEqual({ waits: [], next: null })
  expect((await client.jobs()).map(({ name, isExecutedHere }) => [name, isExecutedHere])).toEqual([
    ['resize-image', true],
    ['send-mail', false],
  ])
})

describe('trouble on the way', () => {
  it('is waited for by who waits for a run that was seen', async () => {
    const { durably, handler } = openWithJobs()
    const { id } = await durably.trigger('resize-image', { width: 3 })
    const trouble = [
      () => Promise.reject(new TypeError('fetch failed')),
      () => new Response('<h1>Bad gateway</h1>', { status: 502, headers: { 'content-type': 'text/html' } }),
      () => new Response(null, { status: 429 }),
    ]
    let asked = 0
    const client = clientOf(async (request) => {
      const answer = trouble[asked++ - 1]
      if (answer !== undefined) return answer()
      if (asked > trouble.length) await durably.runUntilIdle()
      return handler(request)
    })
    expect(await client.wait(id)).toEqual({ id, output: 3 })
    expect(asked).toBe(trouble.length + 2)
  })

  it('is told to who waits for a run that nobody has seen yet, and whatever will not pass', async () => {
    const { durably, handler } = openWithJobs()
    const { id } = await durably.trigger('resize-image', { width: 3 })
    const unreachable = clientOf(() => Promise.reject(new TypeError('fetch failed')))
    await expect(unreachable.wait(id)).rejects.toThrow(UnreachableError)
    let asked = 0
    const loggedOut = clientOf(async (request) =>
      asked++ === 0 ? handler(request) : new Response(null, { status: 401 }),
    )
    await expect(loggedOut.wait(id)).rejects.toMatchObject({ name: 'ServerError', status: 401 })
  })

  it('is told to who waits for a run that the server fails to show', async () => {
    const { client, durably } = openWithJobs({
      redact(value, { field }) {
        if (field === 'output') throw new Error('no')
        return value
      },
    })
    const { id } = await durably.trigger('resize-image', { width: 3 })
    const waited = expect(client.wait(id)).rejects.toMatchObject({ code: 'INTERNAL', status: 500 })
    await durably.runUntilIdle()
    await waited
  })

  it('of a read says so, and of a write that nobody knows what became of it', async () => {
    const client = clientOf(() => Promise.reject(new TypeError('fetch failed')))
    await expect(client.getRun('x')).rejects.toThrow(UnreachableError)
    await expect(client.trigger('send-mail', { to: 'a' })).rejects.toThrow(UnknownOutcomeError)
  })

  it('of whoever stands between is told with what it answered', async () => {
    const client = clientOf(async () => new Response('<html>', { status: 502, statusText: 'Bad Gateway' }))
    await expect(client.getRun('x')).rejects.toThrow(
      new ServerError('HTTP', 'The server answered 502 Bad Gateway.', 502),
    )
  })

  it('that breaks off is as one that never came, and one without JSON is told as such', async () => {
    const broken = () =>
      new ReadableStream({
        start(controller) {
          controller.enqueue(new TextEncoder().encode('{"id":'))
          controller.error(new TypeError('terminated'))
        },
      })
    const cut = createDurablyClient({ url: 'http://a', fetch: async () => new Response(broken()) })
    await expect(cut.getRun('x')).rejects.toMatchObject({ code: 'UNREACHABLE' })
    await expect(cut.cancel('x')).rejects.toMatchObject({ code: 'UNKNOWN_OUTCOME' })
    const page = createDurablyClient({ url: 'http://a', fetch: async () => new Response('<!doctype html>') })
    await expect(page.getRuns()).rejects.toMatchObject({ code: 'HTTP', status: 200 })
    await expect(page.subscribe('x').getReader().read()).rejects.toMatchObject({ code: 'HTTP', status: 200 })
  })

  it('of an address that is none is told, also of a stream', async () => {
    const client = createDurablyClient({ url: '/api' })
    await expect(client.getRuns()).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    await expect(client.subscribe('x').getReader().read()).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    expect(() => createDurablyClient({ url: undefined as never })).toThrow('must be a text')
  })

  it('of who may not is told, also of a stream', async () => {
    const { client } = openWithJobs({ authorize: () => null })
    await expect(client.getRuns()).rejects.toMatchObject({ code: 'UNAUTHENTICATED', status: 401 })
    await expect(client.subscribe('x').getReader().read()).rejects.toMatchObject({ code: 'UNAUTHENTICATED' })
  })
})

/** Bodies end, or break, after so many bytes each. */
function cutting(
  handler: DurablyHandler,
  cuts: readonly { readonly bytes: number; readonly breaks: boolean }[],
): DurablyHandler {
  const left = [...cuts]
  return async (request) => {
    const response = await handler(request)
    const cut = left.shift()
    if (cut === undefined || response.body === null) return response
    let bytes = 0
    const reader = response.body.getReader()
    const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
      async pull(controller) {
        const { value, done } = await reader.read()
        if (done) return controller.close()
        const rest = value.subarray(0, cut.bytes - bytes)
        bytes += value.byteLength
        if (rest.byteLength > 0) controller.enqueue(rest)
        if (bytes < cut.bytes) return
        await reader.cancel()
        if (cut.breaks) controller.error(new TypeError('terminated'))
        else controller.close()
      },
      cancel: () => reader.cancel(),
    })
    return new Response(body, response)
  }
}

async function endedRun() {
  const durably = createDurably({ storage: createMemoryStorage(), logger: null })
  durably.use(withLogPersistence())
  durably.defineJob({ name: 'ü', input: z.unknown() }, async (ctx) => {
    for (let n = 0; n < 5; n++) await ctx.run(`schrïtt ${n}`, () => '✓'.repeat(n))
  })
  const { id } = await durably.trigger('ü', 1)
  await durably.runUntilIdle()
  return { durably, id, events: await durably.getEvents(id) }
}

describe('a subscription', () => {
  it('has every event once, in order, wherever connections are cut', async () => {
    const { durably, id, events } = await endedRun()
    vi.useFakeTimers()
    const handler = described(createDurablyHandler(durably, { allowAnonymous: true }))
    const cut = fc.record({ bytes: fc.integer({ min: 1, max: 1500 }), breaks: fc.boolean() })
    const property = fc.asyncProperty(fc.array(cut, { maxLength: 6 }), async (cuts) => {
      const read: StoredEvent[] = []
      const whole = (async () => {
        for await (const event of clientOf(cutting(handler, cuts)).subscribe(id)) read.push(event)
        return true
      })()
      let isDone = false
      void whole.then(() => {
        isDone = true
      })
      while (!isDone) await vi.advanceTimersByTimeAsync(1000)
      expect(read).toEqual(events)
    })
    await fc.assert(property, { numRuns: 50 })
    await durably.close()
  })

  it('comes back to a server that was away, less and less often', async () => {
    const { durably, id, events } = await endedRun()
    vi.useFakeTimers()
    let isAway = true
    const askedAt: number[] = []
    const handler = described(createDurablyHandler(durably, { allowAnonymous: true }))
    const client = clientOf(async (request) => {
      askedAt.push(Date.now())
      if (isAway && askedAt.length % 2 === 0) throw new TypeError('fetch failed')
      return isAway ? new Response('away', { status: 503 }) : handler(request)
    })
    const reader = client.subscribe(id).getReader()
    const first = reader.read()
    await vi.advanceTimersByTimeAsync(60_000)
    expect(askedAt.length).toBeGreaterThan(8)
    expect(askedAt.length).toBeLessThan(20)
    isAway = false
    await vi.advanceTimersByTimeAsync(10_000)
    expect(await first).toEqual({ value: events[0], done: false })
    await reader.cancel()
    await vi.advanceTimersByTimeAsync(0)
    await durably.close()
    expect(vi.getTimerCount()).toBe(0)
  })

  it('opens anew what has been silent for too long', async () => {
    vi.useFakeTimers()
    let opened = 0
    const client = clientOf(async () => {
      opened += 1
      return new Response(new ReadableStream(), { headers: { 'content-type': 'text/event-stream' } })
    })
    const reader = client.subscribe('x').getReader()
    void reader.read()
    await vi.advanceTimersByTimeAsync(59_000)
    expect(opened).toBe(1)
    await vi.advanceTimersByTimeAsync(3000)
    expect(opened).toBe(2)
    await reader.cancel()
    await vi.advanceTimersByTimeAsync(0)
    expect(vi.getTimerCount()).toBe(0)
  })
})

it('says which runs change, and after a gap that any may have', async () => {
  const { durably, handler } = openWithJobs()
  const changes: RunChange[] = []
  const cuts = [{ bytes: 200, breaks: true }]
  const stop = clientOf(cutting(handler, cuts)).watchRuns((change) => changes.push(change))
  // Before the stream is open nobody tells of anything.
  const begun: string[] = []
  const begin = async () => void begun.push((await durably.trigger('resize-image', { width: 1 })).id)
  await expect.poll(async () => (changes.length === 0 ? begin() : null)).toBe(null)
  const [{ runId }] = changes as [RunChange]
  expect(begun).toContain(runId)
  await durably.cancel(String(runId))
  await expect.poll(() => changes).toContainEqual({ runId, isUrgent: true })
  await expect.poll(() => begin().then(() => changes)).toContainEqual({ runId: null, isUrgent: false })
  stop()
})
