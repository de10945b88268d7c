import { createMemoryStorage } from '@coji/durably-core/memory'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { z } from 'zod'
import { reportSuite } from '../../../test/report'
import { scaled } from '../../../test/scale'
import { pick, type Random, randomFrom } from '../../cluster/test/simulation/random'
import type { DurablyHandler, Granted } from '../src'
import { openApi, toRequest, type ApiOptions } from './api'
import { intBelow, SEED } from './chance'
import { Follower, followRun, type Message } from './sse'

function openWithJobs(options: ApiOptions = {}) {
  const api = openApi(options)
  api.durably.defineJob({ name: 'count', input: z.number() }, async (ctx, steps) => {
    for (let n = 0; n < steps; n++) await ctx.run(`step ${n}`, () => n)
  })
  api.durably.defineJob({ name: 'ask', input: z.unknown() }, (ctx) => ctx.waitFor('answer', { schema: z.string() }))
  return api
}

async function ranOf(api: ReturnType<typeof openWithJobs>): Promise<string> {
  const { id } = await api.durably.trigger('count', 5)
  await api.durably.runUntilIdle()
  return id
}

const isDone = (messages: readonly Message[]) => messages.at(-1)?.event === 'done'
const seqsOf = (messages: readonly Message[]) =>
  messages.filter(({ id }) => id !== undefined).map(({ id }) => Number(id))

describe('following a run over HTTP', () => {
  it('tells every event once, in order, with its number, and says done at the end', async () => {
    const api = openWithJobs()
    const id = await ranOf(api)
    const response = await api.handler(toRequest(`GET /runs/${id}/events`))
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
    })
    const messages = await new Follower(response.body).toEnd()
    const events = await api.durably.getEvents(id)
    expect(messages.slice(0, -1).map(({ data }) => data)).toEqual(events)
    expect(seqsOf(messages)).toEqual(events.map(({ seq }) => seq))
    expect(messages.at(-1)).toEqual({ id: undefined, event: 'done', data: { status: 'completed' } })
  })

  it('goes on where a reader stopped, at any event, on any instance', async () => {
    const storage = createMemoryStorage()
    const id = await ranOf(openWithJobs({ storage }))
    const { handler } = openWithJobs({ storage })
    const all = await (await followRun(handler, id)).toEnd()
    for (let k = 0; k < all.length; k++) {
      expect(await (await followRun(handler, id, String(k))).toEnd(), `after ${k}`).toEqual(all.slice(k))
      const byQuery = await handler(toRequest(`GET /runs/${id}/events?after=${k}`))
      expect(await new Follower(byQuery.body).toEnd()).toEqual(all.slice(k))
    }
  })

  it('waits for what comes, and for the end of a run that waits', async () => {
    const api = openWithJobs()
    const { id } = await api.durably.trigger('ask')
    const follower = await followRun(api.handler, id)
    const first = await follower.until((messages) => messages.length > 0)
    expect(first).toMatchObject([{ data: { type: 'run:trigger' } }])
    await api.durably.runUntilIdle()
    await follower.until((messages) => messages.some(({ data }) => data.type === 'run:suspend'))
    expect(isDone(follower.messages)).toBe(false)
    await api.durably.signal(id, 'answer', 'yes')
    await api.durably.runUntilIdle()
    const messages = await follower.toEnd()
    expect(messages.at(-2)).toMatchObject({ data: { type: 'run:complete', output: 'yes' } })
    expect(messages.at(-1)).toMatchObject({ event: 'done', data: { status: 'completed' } })
    expect(seqsOf(messages)).toEqual(messages.slice(0, -1).map((_, index) => index + 1))
  })

  it('says of a run that was cancelled at once that it is done, and not of one that was only asked to', async () => {
    const api = openWithJobs()
    const { id } = await api.durably.trigger('ask')
    await api.durably.cancel(id)
    expect((await (await followRun(api.handler, id)).toEnd()).at(-1)).toMatchObject({ data: { status: 'cancelled' } })
  })

  it('has no done for a run that was deleted meanwhile', async () => {
    const api = openWithJobs()
    const { id } = await api.durably.trigger('ask')
    const follower = await followRun(api.handler, id)
    await follower.until((messages) => messages.length === 1)
    await api.durably.cancel(id)
    await api.durably.deleteRun(id)
    expect(isDone(await follower.toEnd())).toBe(false)
  })

  it('finds the end where the events that tell of it are not stored', async () => {
    const api = openWithJobs({ history: false })
    api.durably.use({ name: 'few', records: { events: ['run:trigger', 'step:complete'] } })
    const id = await ranOf(api)
    const messages = await (await followRun(api.handler, id)).toEnd()
    expect(messages.at(-2)).toMatchObject({ data: { type: 'step:complete' } })
    expect(messages.at(-1)).toMatchObject({ event: 'done', data: { status: 'completed' } })
  })

  it('needs a history, and names the plugin that has it', async () => {
    const api = openWithJobs({ history: false })
    const { id } = await api.durably.trigger('count', 1)
    const { status, json } = await api.ask(`GET /runs/${id}/events`)
    expect({ status, code: json.code }).toEqual({ status: 409, code: 'HISTORY_REQUIRED' })
    expect(json.detail).toContain('withLogPersistence()')
  })

  it('refuses a place that is none', async () => {
    const api = openWithJobs()
    const id = await ranOf(api)
    const headers = { 'last-event-id': 'x' }
    expect((await api.ask(`GET /runs/${id}/events`, { headers })).status).toBe(400)
    expect((await api.ask(`GET /runs/${id}/events?after=-1`)).status).toBe(400)
    expect((await (await followRun(api.handler, id, '999')).toEnd()).at(-1)).toMatchObject({ event: 'done' })
  })

  it('ends when the run may not be seen any more, for the reader to come back and be told', async () => {
    let granted: Granted | null = { tenant: null, allow: 'read' }
    const api = openWithJobs({ authorize: () => granted, keepAliveInterval: 5, recheckInterval: 10 })
    const { id } = await api.durably.trigger('ask')
    const follower = await followRun(api.handler, id)
    await follower.until(() => follower.comments > 3)
    granted = null
    expect(isDone(await follower.toEnd())).toBe(false)
    expect((await api.ask(`GET /runs/${id}/events`)).status).toBe(401)
  })

  it('lets go of who does not read while the run goes on, with no done, and loses them nothing', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    onTestFinished(() => void vi.useRealTimers())
    const keepAliveInterval = 1000
    const api = openWithJobs({ keepAliveInterval })
    const { id } = await api.durably.trigger('count', 5)
    const follower = await followRun(api.handler, id)
    await follower.until((messages) => messages.length === 1)
    await api.durably.runUntilIdle()
    // One sign of life it has room for, and four it has none for.
    vi.advanceTimersByTime(5 * keepAliveInterval)
    // No stream is open any more.
    expect(vi.getTimerCount()).toBe(0)
    const read = await follower.toEnd()
    const whole = await (await followRun(api.handler, id)).toEnd()
    expect(isDone(read)).toBe(false)
    expect(read.length).toBeLessThan(whole.length / 2)
    const rest = await followRun(api.handler, id, String(seqsOf(read).at(-1)))
    expect([...read, ...(await rest.toEnd())]).toEqual(whole)
  })

  it('ends when the server goes', async () => {
    const api = openWithJobs()
    const { id } = await api.durably.trigger('ask')
    const follower = await followRun(api.handler, id)
    await follower.until((messages) => messages.length > 0)
    const ended = follower.toEnd()
    await api.durably.close()
    expect(isDone(await ended)).toBe(false)
  })
})

const STORIES = scaled({ quick: 20, full: 500 })

/** Turns that bodies take, of which there are as many as were given. */
function createTurns() {
  const waiting: (() => void)[] = []
  let free = 0
  const look = () => {
    for (; free > 0 && waiting.length > 0; free--) waiting.shift()?.()
  }
  return {
    take: () =>
      new Promise<void>((resolve) => {
        waiting.push(resolve)
        look()
      }),
    give(count: number) {
      free += count
      look()
    },
  }
}

interface CutReading {
  readonly id: string
  readonly handlers: readonly DurablyHandler[]
  readonly random: Random
  /** So many more events are wanted. */
  readonly onWant: (count: number) => void
}

/** Follows a run to its end, some events at a time, each time from where it was cut off. */
async function readWithCuts({ id, handlers, random, onWant }: CutReading): Promise<readonly Message[]> {
  const log: Message[] = []
  while (!isDone(log)) {
    const count = intBelow(random, 8)
    onWant(count)
    const follower = await followRun(pick(random, handlers), id, seqsOf(log).at(-1)?.toString())
    await follower.until((messages) => messages.length >= count)
    log.push(...follower.messages.slice(0, count))
    await follower.leave()
  }
  return log
}

/** What each reader of a run has read, and what is to be read. */
async function playCuts(seed: number) {
  const random = randomFrom(seed)
  const storage = createMemoryStorage()
  const [one, other] = [openApi({ storage }), openApi({ storage })]
  const turns = createTurns()
  one.durably.defineJob({ name: 'turns', input: z.unknown() }, async (ctx) => {
    for (let n = 0; n < 12; n++) await ctx.run(`step ${n}`, () => turns.take())
  })
  const { id } = await one.durably.trigger('turns', 1)
  const handlers = [one.handler, other.handler]
  const reading = { id, handlers, random, onWant: turns.give }
  const readers = Array.from({ length: 1 + intBelow(random, 4) }, () => readWithCuts(reading))
  await one.durably.runUntilIdle()
  const logs = await Promise.all(readers)
  const whole = await (await followRun(other.handler, id)).toEnd()
  return { seed, logs, whole }
}

it('what was read before each cut and after it is the log, wherever a reader is cut off while the run goes on', async () => {
  reportSuite({ suite: 'readers that are cut off', stories: STORIES, 'first seed': SEED })
  const played = await Promise.all(Array.from({ length: STORIES }, (_, story) => playCuts(SEED + story)))
  for (const { seed, logs, whole } of played) {
    expect(seqsOf(whole)).toEqual(whole.slice(0, -1).map((_, index) => index + 1))
    for (const log of logs) expect(log, `seed ${seed}`).toEqual(whole)
  }
})
