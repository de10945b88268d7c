import { once } from 'node:events'
import { createServer, request, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { createMemoryStorage } from '@coji/durably-core/memory'
import { getRequestListener } from '@hono/node-server'
import { createParser } from 'eventsource-parser'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { reportSuite } from '../../../test/report'
import { scaled } from '../../../test/scale'
import { openApi } from './api'

const CLIENTS = scaled({ quick: 200, full: 1000 })
const RUNS = scaled({ quick: 20, full: 100 })
const STEPS = 20

/** One client on a socket of its own, which comes back to where it was whenever it is cut off. */
class SocketFollower {
  readonly log: { readonly seq: number; readonly type: string }[] = []
  readonly delaysMs: number[] = []
  readonly done: Promise<void>
  #finish = () => {}
  #current: IncomingMessage | null = null
  readonly #url: string

  constructor(url: string) {
    this.#url = url
    this.done = new Promise((resolve) => {
      this.#finish = resolve
    })
    this.#connect()
  }

  cut(): void {
    this.#current?.destroy()
  }

  #connect(): void {
    const asked = request(this.#url, { headers: { 'last-event-id': String(this.log.at(-1)?.seq ?? 0) }, agent: false })
    asked.on('response', (response) => this.#read(response))
    asked.on('error', () => setImmediate(() => this.#connect()))
    asked.end()
  }

  #read(response: IncomingMessage): void {
    this.#current = response
    let isDone = false
    const parser = createParser({
      onEvent: ({ event, data }) => {
        if (event === 'done') isDone = true
        else {
          const told = JSON.parse(data)
          this.log.push({ seq: told.seq, type: told.type })
          this.delaysMs.push(Date.now() - Date.parse(told.timestamp))
        }
      },
    })
    response.setEncoding('utf8')
    response.on('data', (text: string) => parser.feed(text))
    response.on('error', () => {})
    response.on('close', () => {
      if (isDone) this.#finish()
      else setImmediate(() => this.#connect())
    })
  }
}

it(`${CLIENTS} clients on sockets see every event once, in order, through cuts and storms`, async () => {
  const storage = createMemoryStorage()
  let queries = 0
  const { tail } = storage.events
  Object.assign(storage.events, {
    tail: (...given: Parameters<typeof tail>) => {
      queries += 1
      return tail(...given)
    },
  })
  const { durably, handler } = openApi({ storage })
  durably.defineJob({ name: 'steps', input: z.unknown() }, async (ctx) => {
    await ctx.waitFor('go', { schema: z.unknown() })
    for (let n = 0; n < STEPS; n++) {
      await ctx.run(`step ${n}`, () => n)
      if (n % 5 === 0) await ctx.sleep(`pause ${n}`, 20)
    }
  })
  const server = createServer(getRequestListener(handler))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const lag = monitorEventLoopDelay()
  const runs = await Promise.all(Array.from({ length: RUNS }, () => durably.trigger('steps', 1)))
  durably.start()
  const urlOf = (index: number) => `http://127.0.0.1:${port}/runs/${runs[index % RUNS]?.id}/events`
  const followers = Array.from({ length: CLIENTS }, (_, index) => new SocketFollower(urlOf(index)))
  await expect.poll(() => followers.every(({ log }) => log.length > 0)).toBe(true)
  queries = 0
  lag.enable()
  for (const { id } of runs) await durably.signal(id, 'go', 1)

  // Some are cut off at any place, and once all of them at the same moment.
  const isHalfway = () => followers.some(({ log }) => log.length > STEPS)
  for (let n = 0; !isHalfway(); n++) {
    followers[(n * 7) % CLIENTS]?.cut()
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  for (const follower of followers) follower.cut()
  await Promise.all(followers.map(({ done }) => done))
  lag.disable()

  for (const [index, { log }] of followers.entries()) {
    const stored = await durably.getEvents(runs[index % RUNS]?.id ?? '')
    expect(log).toEqual(stored.map(({ seq, type }) => ({ seq, type })))
  }
  const told = followers.reduce((sum, { log }) => sum + log.length, 0)
  const delays = followers.flatMap(({ delaysMs }) => delaysMs).sort((a, b) => a - b)
  reportSuite({
    suite: `${CLIENTS} followers`,
    events: told,
    'tail queries': queries,
    'p99 ms to the client': delays[Math.floor(delays.length * 0.99)] ?? 0,
    'p99 ms of the event loop': Math.round(lag.percentile(99) / 1e6),
  })
  // Each client alone would have asked some times for each of its steps.
  expect(queries).toBeLessThan(told / 4)

  await durably.close()
  server.close()
  server.closeAllConnections()
  const open = () =>
    process.getActiveResourcesInfo().filter((kind) => kind === 'TCPSocketWrap' || kind === 'TCPServerWrap')
  await expect.poll(open).toEqual([])
})
