import { setTimeout as sleep } from 'node:timers/promises'
import { createParser } from 'eventsource-parser'
import { onTestFinished } from 'vitest'
import { createDatabase } from '../../../test/postgres'
import { type RunningApi, startApi } from '../src/api/start'
import { type Env, readApiConfig, readWorkerConfig } from '../src/config'
import type { Piece } from '../src/contract'
import { createLog, type Log } from '../src/log'
import { piecesOf } from '../src/pieces'
import { startWorker, type WorkerParts } from '../src/worker/start'

export const PUBLIC_URL = 'http://agentic.test'

export const ENV = {
  PROFILE: 'dev-local',
  PUBLIC_URL,
  PORT: '0',
  HOST: '127.0.0.1',
  SECRET_KEYS: 'test:0123456789abcdef0123456789abcdef',
  LINK_SECRET: 'for-tests-0123456789abcdef0123456789',
  DEMO_USERS: '1',
  RUNS_PER_MINUTE: '100000',
  DATABASE_CONNECTIONS: '4',
  DEMO_WORD_MS: '0',
} satisfies Env

const LONGEST_LOG = 200
/** Between two tries to reach somebody who is away. */
const PAUSE_MS = 20

/** The parts of a deployment, in this process: one database, and as many apis and workers as a test wants. */
export interface Deployment {
  readonly env: Env
  readonly log: readonly string[]
  startApi(env?: Env): Promise<RunningApi>
  startWorker(env?: Env, parts?: WorkerParts): ReturnType<typeof startWorker>
}

/** Ends with the test, or when `end` is called by who keeps it for several. */
export async function deploy(given: Env = {}): Promise<Deployment & { end(): Promise<void> }> {
  const database = await createDatabase()
  const env: Env = { ...ENV, DATABASE_URL: database.url, ...given }
  const lines: string[] = []
  const log: Log = createLog('test', (line) => {
    lines.push(line)
    if (lines.length > LONGEST_LOG) lines.shift()
  })
  const running = new Set<{ stop(): Promise<void> }>()
  const kept = <T extends { stop(): Promise<void> }>(part: T): T => {
    running.add(part)
    return { ...part, stop: () => (running.delete(part) ? part.stop() : Promise.resolve()) }
  }
  return {
    env,
    log: lines,
    startApi: async (more = {}) => kept(await startApi(readApiConfig({ ...env, ...more }), log)),
    startWorker: async (more = {}, parts = {}) =>
      kept(await startWorker(readWorkerConfig({ ...env, ...more }), log, parts)),
    async end() {
      for (const part of [...running].reverse()) await part.stop()
      await database.drop()
    },
  }
}

export async function deployed(given: Env = {}): Promise<Deployment> {
  const deployment = await deploy(given)
  onTestFinished(() => deployment.end())
  return deployment
}

/** What came over the wire: tests look into it by the names that they expect there. */
// biome-ignore lint/suspicious/noExplicitAny: checked by the expectations of each test, where a wrong name is `undefined`.
export type Answered = any

/** A browser without a page: it keeps cookies, and says where it comes from. */
export class Browser {
  readonly cookies = new Map<string, string>()
  urls: readonly string[]
  origin = PUBLIC_URL
  /** Where it is, as the proxy in front says. */
  address: string | null = null
  #next = 0

  /** Several addresses are asked in turn, as behind a load balancer. */
  constructor(...urls: readonly string[]) {
    this.urls = urls
  }

  async fetch(path: string, init: RequestInit = {}): Promise<Response> {
    const url = this.urls[this.#next++ % this.urls.length] ?? ''
    const headers = new Headers(init.headers)
    if (this.cookies.size > 0) headers.set('cookie', [...this.cookies].map((pair) => pair.join('=')).join('; '))
    if (!headers.has('origin') && !headers.has('sec-fetch-site')) headers.set('origin', this.origin)
    if (this.address !== null) headers.set('x-forwarded-for', this.address)
    const response = await fetch(new URL(path, url), { redirect: 'manual', ...init, headers })
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (value === '' || /max-age=0/i.test(line)) this.cookies.delete(name)
      else this.cookies.set(name, value)
    }
    return response
  }

  async send(
    method: string,
    path: string,
    body?: unknown,
  ): Promise<{ readonly status: number; readonly body: Answered }> {
    const json =
      body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
    const response = await this.fetch(path, { method, ...json })
    const text = await response.text()
    return { status: response.status, body: text === '' ? null : JSON.parse(text) }
  }

  get(path: string) {
    return this.send('GET', path)
  }

  post(path: string, body?: unknown) {
    return this.send('POST', path, body)
  }

  /** Signs in as one of the demo users. */
  async be(name: 'ada' | 'grace'): Promise<this> {
    const { status } = await this.post('/api/auth/demo', { user_id: `demo-${name}` })
    if (status !== 200) throw new Error(`Signing in gave ${status}.`)
    return this
  }

  async newSession(): Promise<string> {
    return (await this.post('/api/sessions', {})).body.session_id
  }

  /** Says something in a session, and gives the run. */
  async say(session_id: string, message: string): Promise<string> {
    const { status, body } = await this.post('/api/runs', { session_id, message })
    if (status !== 202) throw new Error(`POST /api/runs gave ${status}: ${JSON.stringify(body)}`)
    return body.run_id
  }

  /** The frames of a stream as they come, until it ends; what is thrown when it is cut is thrown. */
  async *frames(path: string, init: RequestInit = {}): AsyncGenerator<Frame> {
    const response = await this.fetch(path, init)
    if (!response.ok || response.body === null) throw new Error(`${path} gave ${response.status}.`)
    const waiting: Frame[] = []
    const parser = createParser({
      onEvent: ({ id, event, data }) => {
        waiting.push({ id: id === undefined ? null : Number(id), event: event ?? 'message', data: JSON.parse(data) })
      },
    })
    const decoder = new TextDecoder()
    for await (const piece of response.body) {
      parser.feed(decoder.decode(piece, { stream: true }))
      yield* waiting.splice(0)
    }
  }

  /** Follows a run to its end, on whichever instance answers, going on after each break. */
  async *follow(runId: string): AsyncGenerator<Frame> {
    let last = 0
    for (;;) {
      try {
        for await (const frame of this.frames(`/api/runs/${runId}/events`, {
          headers: { 'last-event-id': `${last}` },
        })) {
          if (frame.id !== null) last = frame.id
          yield frame
          if (frame.event === 'done') return
        }
      } catch (error) {
        if (!isBroken(error)) throw error
        await sleep(PAUSE_MS)
      }
    }
  }

  async ended(runId: string): Promise<readonly Frame[]> {
    const frames: Frame[] = []
    for await (const frame of this.follow(runId)) frames.push(frame)
    return frames
  }

  /** Follows a run until a piece of it is what is looked for. */
  async until<TType extends Piece['type']>(
    runId: string,
    isIt: (piece: Piece) => piece is Extract<Piece, { type: TType }>,
  ): Promise<Extract<Piece, { type: TType }>> {
    for await (const frame of this.follow(runId)) {
      const found = piecesIn([frame]).find(isIt)
      if (found !== undefined) return found
    }
    throw new Error(`Run ${runId} ended without it.`)
  }
}

export interface Frame {
  readonly id: number | null
  readonly event: string
  readonly data: Answered
}

/** A connection that is refused, cut, or an instance that goes away. */
function isBroken(error: unknown): boolean {
  return error instanceof TypeError || /gave 50[234]/.test(String(error))
}

export function piecesIn(frames: readonly Frame[]): Piece[] {
  return frames.filter(({ event }) => event === 'message').flatMap(({ data }) => piecesOf(data))
}

/** What the chat shows as the answer, read from the pieces alone. */
export function answerIn(frames: readonly Frame[]): string {
  const turns = new Map<number, string>()
  for (const piece of piecesIn(frames)) {
    if (piece.type === 'turn') turns.set(piece.turn, '')
    if (piece.type === 'text') turns.set(piece.turn, (turns.get(piece.turn) ?? '') + piece.text)
  }
  return [...turns.values()].join('')
}

export const isPiece =
  <TType extends Piece['type']>(type: TType) =>
  (piece: Piece): piece is Extract<Piece, { type: TType }> =>
    piece.type === type

/** The run rests until somebody decides, and no worker holds it. */
export function isSuspended(piece: Piece): piece is Extract<Piece, { type: 'state' }> {
  return piece.type === 'state' && piece.state === 'waiting'
}
