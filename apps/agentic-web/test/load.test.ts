import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it, onTestFinished } from 'vitest'
import { SCALE } from '../../../test/scale'
import { createProxy } from '../src/web-server/proxy'
import { answerIn, Browser, type Frame } from './deployment'
import { type Asked, startModelServer } from './model-server'
import { type Processes, startProcesses } from './processes'

const CHATS = 200
const ARRIVE_EVERY_MS = 50
const TOKENS = 150
const TOKEN_MS = 150
const ANSWER = Array.from({ length: TOKENS }, (_, n) => `t${n} `).join('')

/** Those that are to go on at the same time: none ends before the last one has begun. */
class Wave {
  #begun = 0
  #resolve = () => {}
  readonly all = new Promise<void>((resolve) => {
    this.#resolve = resolve
  })

  begin(): void {
    if (++this.#begun === CHATS) this.#resolve()
  }
}

/** As a model does: a word, and a while later another one. */
async function stream(asked: Asked, wave: Wave): Promise<void> {
  for (let n = 0; n < TOKENS; n++) {
    if (n === TOKENS - 1) await wave.all
    asked.say({ content: `t${n} ` })
    await sleep(TOKEN_MS)
  }
  asked.say({}, 'stop')
  asked.done()
}

/** How many go on at the same time. */
class Count {
  peak = 0
  #open = 0

  begin(): void {
    this.peak = Math.max(this.peak, ++this.#open)
  }

  end(): void {
    this.#open--
  }
}

/** Begins one after the other, and waits for all. */
async function arriving<T>(one: (n: number) => Promise<T>): Promise<T[]> {
  const all: Promise<T>[] = []
  for (let n = 0; n < CHATS; n++) {
    all.push(one(n))
    await sleep(ARRIVE_EVERY_MS)
  }
  return Promise.all(all)
}

function p95(times: readonly number[]): number {
  return Math.round([...times].sort((a, b) => a - b)[Math.floor(times.length * 0.95)] ?? 0)
}

const TICK_MS = 10

/** How long processes of a service have had a core until now, where Linux tells it. */
function coreMs({ places, pidOf }: Processes, service: string): number {
  const pids = places.filter((place) => place.service.name === service).map(({ name }) => pidOf(name))
  return pids.reduce((sum: number, pid) => {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const [user, system] = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .slice(11, 13)
    return sum + (Number(user) + Number(system)) * TICK_MS
  }, 0)
}

async function bareModel(baseUrl: string, wave: Wave): Promise<number> {
  const proxy = createProxy([new URL(baseUrl).origin])
  const server = createServer((request, response) => void proxy(request, response)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const times = await arriving(async () => {
    const began = performance.now()
    const response = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, { method: 'POST', body: '{}' })
    let first = 0
    for await (const _piece of response.body ?? []) {
      if (first > 0) continue
      first = performance.now() - began
      wave.begin()
    }
    return first
  })
  server.close()
  server.closeAllConnections()
  return p95(times)
}

it.runIf(SCALE === 'full')('200 chats that stream at the same time have no gap, and begin to be answered', async () => {
  let wave = new Wave()
  const model = await startModelServer((asked) => stream(asked, wave))
  const processes = await startProcesses({
    given: { MODEL_HOSTS: model.host, WORKER_CONCURRENCY: '100' },
    own: { RUNS_PER_MINUTE: '100000' },
  })
  onTestFinished(() => processes.end())
  const ada = new Browser(processes.webUrl)
  ada.origin = processes.webUrl.replace('127.0.0.1', 'localhost')
  await ada.be('ada')
  const settings = { provider: 'openai-compatible', base_url: model.baseUrl, model: 'm', reasoning: 'none' }
  await ada.send('PUT', '/api/settings', settings)
  const sessions = await Promise.all(Array.from({ length: CHATS }, () => ada.newSession()))
  const bare = await bareModel(model.baseUrl, wave)
  wave = new Wave()
  const streams = new Count()
  const before = { worker: coreMs(processes, 'worker'), api: coreMs(processes, 'api') }
  const times = await arriving(async (n) => {
    const began = performance.now()
    let first = 0
    const frames: Frame[] = []
    for await (const frame of ada.follow(await ada.say(sessions[n] ?? '', 'hello'))) {
      frames.push(frame)
      if (first > 0 || frame.data.type !== 'step:chunk') continue
      first = performance.now() - began
      streams.begin()
      wave.begin()
    }
    streams.end()
    expect(answerIn(frames)).toBe(ANSWER)
    expect(frames.slice(0, -1).map(({ id }) => id)).toEqual(frames.slice(0, -1).map((_, each) => each + 1))
    return first
  })
  console.log(`first token, p95 of ${CHATS}: ${p95(times)} ms; of the model alone behind the same proxy: ${bare} ms`)
  const perAnswer = (service: 'worker' | 'api') => Math.round((coreMs(processes, service) - before[service]) / CHATS)
  console.log(
    `of a core, for an answer of ${TOKENS} tokens: a worker ${perAnswer('worker')} ms, an api ${perAnswer('api')} ms`,
  )
  expect(streams.peak).toBe(CHATS)
  expect(model.asked).toHaveLength(2 * CHATS)
})
