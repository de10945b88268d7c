import { once } from 'node:events'
import { createServer, request, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { createDurably } from '@coji/durably-core'
import { createMemoryStorage } from '@coji/durably-core/memory'
import { withLogPersistence } from '@coji/durably-plugins'
import { getRequestListener } from '@hono/node-server'
import { createParser } from 'eventsource-parser'
import { expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { reportSuite } from '../../../test/report'
import { scaled } from '../../../test/scale'
import { type Random, randomFrom } from '../../cluster/test/simulation/random'
import { createDurablyHandler } from '../src'
import { intBelow, SEED } from './chance'
import { described } from './described'
import { handles, handlesWhilePolled, usedHeap } from './left-behind'

const CLIENTS = scaled({ quick: 200, full: 1000 })
const RUNS = scaled({ quick: 20, full: 100 })
const STEPS = 20

/** One client on a socket of its own, which is cut off after certain events, and comes back to where it was. */
class SocketFollower {
  readonly log: { readonly seq: number; readonly type: string; readonly at: number }[] = []
  readonly done: Promise<void>
  #finish = () => {}
  #current: IncomingMessage | null = null
  readonly #url: string
  #cuts: ReadonlySet<number> = new Set()

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

  /** By their numbers. */
  cutAfter(events: ReadonlySet<number>): void {
    this.#cuts = events
  }

  #connect(): void {
    const asked = request(this.#url, { headers: { 'last-event-id': String(this.log.at(-1)?.seq ?? 0) }, agent: false })
    asked.on('response', (response) => this.#read(response))
    asked.on('error', () => setImmediate(() => this.#connect()))
    asked.end()
  }

  #read(response: IncomingMessage): void {
    this.#current = response
    let [isDone, isCut] = [false, false]
    const parser = createParser({
      onEvent: ({ event, data }) => {
        // What came in the same packet is lost with it.
        if (isCut) return
        if (event === 'done') isDone = true
        else {
          const told = JSON.parse(data)
          this.log.push({ seq: told.seq, type: told.type, at: performance.now() })
          isCut = this.#cuts.has(told.seq)
          if (isCut) this.cut()
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

/** Counts what is asked for all streams together, and says when which event was stored. */
function watchedStorage() {
  const storage = createMemoryStorage()
  const seen = { queries: 0 }
  const storedAt = new Map<string, number>()
  const { tail } = storage.events
  Object.assign(storage.events, {
    tail: (...given: Parameters<typeof tail>) => {
      seen.queries += 1
      return tail(...given)
    },
  })
  const commit = storage.commit.bind(storage)
  storage.commit = async (commits) => {
    const results = await commit(commits)
    const at = performance.now()
    for (const [index, { lease }] of commits.entries()) {
      const result = results[index]
      if (result === undefined || !('seq' in result)) continue
      for (let seq = result.seq; seq > 0 && !storedAt.has(`${lease.runId} ${seq}`); seq--) {
        storedAt.set(`${lease.runId} ${seq}`, at)
      }
    }
    return results
  }
  return { storage, seen, storedAt }
}

/** `expect.poll` keeps what it has asked for until the test ends. */
async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 10))
}

interface Round {
  readonly events: number
  readonly queries: number
  /** With all clients connected. */
  readonly heap: number
  /** From commit to client, and of the event loop meanwhile. Whoever is cut off hears later of what is stored meanwhile. */
  readonly p99Ms: { readonly calm: number; readonly storm: number; readonly eventLoop: number }
}

const MOST_CUTS = 4

/** The numbers of the events after which one is cut off, among those of the next steps. */
function cutsFrom(seq: number, random: Random): ReadonlySet<number> {
  return new Set(Array.from({ length: intBelow(random, MOST_CUTS + 1) }, () => seq + intBelow(random, 2 * STEPS)))
}

/** What lives on while clients come and go. */
async function openServer() {
  const watched = watchedStorage()
  const durably = createDurably({ storage: watched.storage, logger: null }).use(withLogPersistence())
  const handler = described(createDurablyHandler(durably, { allowAnonymous: true }))
  durably.defineJob({ name: 'steps', input: z.unknown() }, async (ctx) => {
    for (const part of ['calm', 'storm']) {
      await ctx.waitFor(part, { schema: z.unknown() })
      for (let n = 0; n < STEPS / 2; n++) {
        await ctx.run(`${part} ${n}`, () => n)
        if (n % 5 === 0) await ctx.sleep(`${part} pause ${n}`, 20)
      }
    }
  })
  const server = createServer(getRequestListener(handler))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  durably.start()
  onTestFinished(async () => {
    await durably.close()
    server.close()
    server.closeAllConnections()
  })
  const connections = () => new Promise<number>((resolve) => server.getConnections((_error, count) => resolve(count)))
  /** Nobody is connected, and nothing is stored. */
  const empty = async () => {
    await expect.poll(connections).toBe(0)
    expect(await durably.purge()).toBe(RUNS)
    watched.storedAt.clear()
  }
  return { ...watched, durably, port, empty }
}

type OpenServer = Awaited<ReturnType<typeof openServer>>

/** Clients on sockets follow runs through cuts and a storm, and see everything. */
async function follow({ durably, port, seen, storedAt }: OpenServer, seed: number): Promise<Round> {
  const random = randomFrom(seed)
  const lag = monitorEventLoopDelay()
  const runs = await Promise.all(Array.from({ length: RUNS }, () => durably.trigger('steps', 1)))
  const runOf = (index: number) => runs[index % RUNS]?.id ?? ''
  const urlOf = (index: number) => `http://127.0.0.1:${port}/runs/${runOf(index)}/events`
  const followers = Array.from({ length: CLIENTS }, (_, index) => new SocketFollower(urlOf(index)))
  await until(() => followers.every(({ log }) => log.length > 0))
  const heap = usedHeap()
  seen.queries = 0
  // What was stored before somebody was connected says how long connecting took.
  storedAt.clear()
  lag.enable()
  for (const { id } of runs) await durably.signal(id, 'calm', 1)
  const seenUntil = (type: string, count: number) =>
    followers.every(({ log }) => log.filter((event) => event.type === type).length >= count)
  await until(() => seenUntil('step:complete', STEPS / 2))
  const delaysOf = (log: SocketFollower['log'], index: number) =>
    log.map(({ seq, at }) => at - (storedAt.get(`${runOf(index)} ${seq}`) ?? at))
  const calm = p99(followers.flatMap(({ log }, index) => delaysOf(log, index)))

  // Each is cut off at places of its own, and once all of them at the same moment.
  for (const follower of followers) follower.cutAfter(cutsFrom(1 + (follower.log.at(-1)?.seq ?? 0), random))
  const before = Math.max(...followers.map(({ log }) => log.length))
  for (const { id } of runs) await durably.signal(id, 'storm', 1)
  await until(() => followers.some(({ log }) => log.length > before + STEPS / 2))
  for (const follower of followers) follower.cut()
  await Promise.all(followers.map(({ done }) => done))
  lag.disable()

  for (const [index, { log }] of followers.entries()) {
    const stored = await durably.getEvents(runOf(index))
    expect(
      log.map(({ seq, type }) => ({ seq, type })),
      `seed ${seed}`,
    ).toEqual(stored.map(({ seq, type }) => ({ seq, type })))
  }
  const storm = p99(followers.flatMap(({ log }, index) => delaysOf(log, index)))
  const events = followers.reduce((sum, { log }) => sum + log.length, 0)
  return {
    ...{ events, queries: seen.queries, heap },
    p99Ms: { calm, storm, eventLoop: lag.percentile(99) / 1e6 },
  }
}

function p99(delays: readonly number[]): number {
  return [...delays].sort((a, b) => a - b)[Math.floor(delays.length * 0.99)] ?? 0
}

it(`${CLIENTS} clients on sockets see every event once, in order, through cuts and storms, and leave nothing`, async () => {
  const server = await openServer()
  // What is made once stays, as does what the engine of JavaScript has compiled for so many.
  await follow(server, SEED)
  await server.empty()
  const [heap, open] = [usedHeap(), await handlesWhilePolled()]
  const many = await follow(server, SEED + 1)
  await server.empty()
  // Of a server that is at work still.
  const left = usedHeap() - heap
  reportSuite({
    suite: `${CLIENTS} followers`,
    seed: SEED,
    events: many.events,
    'tail queries': many.queries,
    'p99 ms from commit to client': many.p99Ms.calm.toFixed(1),
    'with cuts and a storm': many.p99Ms.storm.toFixed(1),
    'p99 ms of the event loop': many.p99Ms.eventLoop.toFixed(1),
    'KiB of a client while connected': ((many.heap - heap) / CLIENTS / 1024).toFixed(1),
    'and afterwards': (left / CLIENTS / 1024).toFixed(1),
  })
  // How often they are asked for together is up to the machine. Each client alone would ask for each of its events.
  expect(many.queries).toBeLessThan(many.events / 4)
  await expect.poll(handles).toBeLessThanOrEqual(open)
  expect(left).toBeLessThan((many.heap - heap) / 4)
})
