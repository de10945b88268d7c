import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { chromium } from 'playwright'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { chromiumOptions } from '../../../test/chromium'
import { type OwnPostgres, startOwnPostgres } from '../../../test/postgres'
import { inLane, scaled } from '../../../test/scale'
import { selfSigned } from '../../../test/self-signed'
import type { Env } from '../src/config'
import { freePort } from '../src/local/free-port'
import { button, signIn, textOf, withTabs } from '../web/test/chat-site'
import { type Collector, startCollector } from './collector'
import { type Answered, answerIn, Browser, type Frame, isPiece, isSuspended, piecesIn } from './deployment'
import { CLIENT, type Issuer, startIssuer, wayBack } from './issuer'
import { startMailbox } from './mailbox'
import { openModelServer, sayAll } from './model-server'
import { CALLBACKS } from './oauth-site'
import { type Processes, startProcesses } from './processes'
import { CHUNKS, strike, VICTIMS, waysTo } from './victims'

let mailbox: Awaited<ReturnType<typeof startMailbox>>
let collector: Collector
let postgres: OwnPostgres
let issuer: Issuer
let processes: Processes
let origin: string
let refusing: Awaited<ReturnType<typeof openModelServer>>
let halting: Awaited<ReturnType<typeof openModelServer>>

beforeAll(async () => {
  mailbox = await startMailbox()
  collector = await startCollector()
  // The first to ask hears nothing, and each one after that no.
  refusing = await openModelServer((asked, count) => void (count > 1 && asked.refuse(401)))
  // Each first to ask hears a word and no end, each second one all of it.
  halting = await openModelServer((asked, count) =>
    count % 2 === 1 ? asked.say({ content: 'word-1 ' }) : sayAll(asked, WORDS),
  )
  postgres = await startOwnPostgres()
  const port = await freePort()
  origin = `http://localhost:${port}`
  issuer = await startIssuer({ redirectUris: Object.values(CALLBACKS).map((path) => `${origin}${path}`) })
  const client = { ISSUER: issuer.url, CLIENT_ID: CLIENT.id, CLIENT_SECRET: CLIENT.secret }
  processes = await startProcesses({
    hasPage: true,
    database: await postgres.createDatabase(),
    given: {
      ...{
        WEB_PORT: String(port),
        FETCH_HOSTS: mailbox.host,
        MODEL_HOSTS: `api.openai.com,${refusing.host},${halting.host}`,
      },
      ...{ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, DRAIN_MS: '50', RUNS_PER_MINUTE: '100000' },
      ...Object.fromEntries([...prefixed('SIGN_IN', client), ...prefixed('OPENAI_OAUTH', client)]),
    },
    own: { DEMO_WORD_MS: '25', OTEL_BSP_SCHEDULE_DELAY: '100' },
  })
})
afterAll(async () => {
  await processes.end()
  await postgres.end()
  await issuer.end()
  mailbox.end()
  refusing.close()
  halting.close()
  collector.end()
})

function prefixed(prefix: string, variables: Readonly<Record<string, string>>): (readonly [string, string])[] {
  return Object.entries(variables).map(([name, value]) => [`${prefix}_${name}`, value])
}

function browser(...urls: string[]): Browser {
  const given = new Browser(...(urls.length === 0 ? [processes.webUrl] : urls))
  given.origin = origin
  return given
}

const WORDS = Array.from({ length: 60 }, (_, n) => `word-${n + 1}`).join(' ')

/** What was seen is what is stored, from the first event to the last, each once. */
async function expectNoGap(ada: Browser, run: string, seen: readonly Frame[]): Promise<void> {
  const stored: Frame[] = []
  for await (const frame of ada.frames(`/api/runs/${run}/events`)) stored.push(frame)
  expect(seen.slice(0, -1).map(({ id }) => id)).toEqual(seen.slice(0, -1).map((_, n) => n + 1))
  expect(seen).toEqual(stored)
}

/** The worker that has the run. */
async function holderOf(ada: Browser, run: string): Promise<string> {
  const { body } = await ada.get(`/api/durably/runs/${run}`)
  return /^worker-\d/.exec(body.ownerId)?.[0] ?? ''
}

async function expectKept(ada: Browser, run: string, answer: string): Promise<void> {
  const { session_id } = (await ada.get(`/api/runs/${run}`)).body
  const { body } = await ada.get(`/api/sessions/${session_id}`)
  const said = body.messages.filter(({ run_id }: Answered) => run_id === run).map(({ content }: Answered) => content)
  expect(said.map(({ role }: Answered) => role)).toEqual(['user', 'assistant'])
  expect(said[1].text).toBe(answer)
}

async function askModelAt(user: Browser, baseUrl: string): Promise<void> {
  const settings = { provider: 'openai-compatible', base_url: baseUrl, model: 'm', reasoning: 'none' }
  expect((await user.send('PUT', '/api/settings', settings)).status).toBe(200)
}

async function expectFailedOnce(grace: Browser, run: string): Promise<void> {
  const frames = await grace.ended(run)
  expect(frames.at(-1)).toMatchObject({ event: 'done', data: { status: 'failed' } })
  expect(piecesIn(frames).filter((piece) => piece.type === 'state' && piece.state === 'failed')).toHaveLength(1)
  await expectNoGap(grace, run, frames)
  const { body } = await grace.get(`/api/runs/${run}`)
  expect(body).toMatchObject({ status: 'failed', error: expect.stringContaining('401') })
  const session = (await grace.get(`/api/sessions/${body.session_id}`)).body
  expect(session).toMatchObject({ state: 'failed', messages: [{ content: { role: 'user' } }] })
}

it('14.1: whichever instance of the api is asked, the run and its events are the same', async () => {
  const [first = '', second = ''] = processes.apiUrls
  const ada = await browser(first).be('ada')
  const run = await ada.say(await ada.newSession(), 'write 60 words')
  const elsewhere = browser(second)
  for (const pair of ada.cookies) elsewhere.cookies.set(...pair)
  const [here, there] = await Promise.all([ada.ended(run), elsewhere.ended(run)])
  expect(there).toEqual(here)
  expect(answerIn(here)).toBe(WORDS)
  expect((await elsewhere.get(`/api/runs/${run}`)).body).toEqual((await ada.get(`/api/runs/${run}`)).body)
})

describe('14.2: a worker that dies or is restarted', () => {
  it.each(inLane(['SIGKILL', 'SIGTERM'] as const, (signal) => signal === 'SIGKILL'))(
    'by %s leaves an answer that is whole, and says that it began again',
    async (signal) => {
      const grace = await browser().be('grace')
      await askModelAt(grace, halting.baseUrl)
      const run = await grace.say(await grace.newSession(), 'hello')
      const frames: Frame[] = []
      for await (const frame of grace.follow(run)) {
        frames.push(frame)
        const isFirst = frames.filter(({ data }) => data.type === 'step:chunk').length === 1
        if (isFirst && frame.data.type === 'step:chunk') await processes.kill(await holderOf(grace, run), signal)
      }
      expect(frames.at(-1)).toMatchObject({ event: 'done', data: { status: 'completed' } })
      const pieces = piecesIn(frames)
      expect(pieces).toContainEqual({ type: 'taken-over' })
      if (signal === 'SIGKILL') expect(pieces).toContainEqual({ type: 'turn', turn: 1, isRepeated: true })
      expect(answerIn(frames)).toBe(WORDS)
      await expectNoGap(grace, run, frames)
      await expectKept(grace, run, WORDS)
      await Promise.all(['worker-1', 'worker-2'].map((name) => processes.ready(name)))
    },
  )

  it('leaves a stop a stop, and a failure a failure', async () => {
    const [ada, grace] = [await browser().be('ada'), await browser().be('grace')]
    await askModelAt(grace, refusing.baseUrl)
    const failing = await grace.say(await grace.newSession(), 'hello')
    const stopped = await ada.say(await ada.newSession(), 'write 5000 words')
    await expect.poll(() => refusing.asked.length).toBe(1)
    await ada.until(stopped, isPiece('text'))
    for (const name of ['worker-1', 'worker-2']) await processes.kill(name)
    await ada.post(`/api/runs/${stopped}/cancel`)
    expect((await ada.ended(stopped)).at(-1)).toMatchObject({ event: 'done', data: { status: 'cancelled' } })
    expect((await ada.get(`/api/runs/${stopped}`)).body.status).toBe('cancelled')
    await expectFailedOnce(grace, failing)
    expect(refusing.asked).toHaveLength(2)
    await Promise.all(['worker-1', 'worker-2'].map((name) => processes.ready(name)))
  })

  it('has a person asked about a call whose outcome it took along, and never makes it twice by itself', async () => {
    const ada = await browser().be('ada')
    const given = JSON.stringify({ url: `http://${mailbox.host}/`, body: { text: 'hello' } })
    const run = await ada.say(await ada.newSession(), `/post_json ${given}`)
    await ada.until(run, isPiece('asked'))
    const decide = (name: string, decision: object) =>
      ada.post(`/api/approvals/${run}/${encodeURIComponent(name)}`, decision)
    await decide('approval 1.1', { decision: 'approve' })
    await expect.poll(() => mailbox.got.length).toBe(1)
    for (const name of ['worker-1', 'worker-2']) await processes.kill(name)
    const asked = await ada.until(
      run,
      (piece): piece is Extract<typeof piece, { type: 'asked' }> =>
        piece.type === 'asked' && piece.why === 'interrupted',
    )
    expect(mailbox.got).toHaveLength(1)
    await expect
      .poll(async () => (await ada.get('/api/approvals')).body.approvals)
      .toMatchObject([{ why: 'interrupted' }])
    await decide(asked.name, { decision: 'approve' })
    await expect.poll(() => mailbox.got.length).toBe(2)
    mailbox.answer()
    const frames = await ada.ended(run)
    expect(piecesIn(frames).filter(isPiece('tool-interrupted'))).toHaveLength(1)
    expect(piecesIn(frames).filter(isPiece('tool-result'))).toMatchObject([{ result: { status: 200 } }])
    // Who knows such keys does it once all the same.
    expect(mailbox.got).toEqual([`${run}/1.1`, `${run}/1.1`])
  })
})

describe('14.3: who reads goes on without a gap', () => {
  it('when the stream is cut after any event, and goes on at another instance', async () => {
    const ada = await browser(...processes.apiUrls).be('ada')
    const run = await ada.say(await ada.newSession(), 'What is 6*7 ?')
    const seen: Frame[] = []
    while (seen.at(-1)?.event !== 'done') {
      const after = String(seen.at(-1)?.id ?? 0)
      for await (const frame of ada.frames(`/api/runs/${run}/events`, { headers: { 'last-event-id': after } })) {
        seen.push(frame)
        break
      }
    }
    expect(answerIn(seen)).toContain('42')
    await expectNoGap(ada, run, seen)
  })

  it('when each process is killed in turn, in the middle of an answer, and an open page shows what is stored', async () => {
    const chrome = await chromium.launch(chromiumOptions())
    onTestFinished(() => chrome.close())
    const ada = await browser().be('ada')
    const session = await ada.newSession()
    await withTabs({ browser: chrome, url: origin }, async ({ open, complaints }) => {
      const page = await open()
      await signIn(page)
      await page.goto(`${origin}/chat/${session}`)
      const shown = (n: number) => textOf(page.locator('.run').nth(n).locator('.prose'))
      const kills = scaled({ quick: 1, full: 30 })
      for (let n = 0; n < kills; n++) {
        const victim = VICTIMS[n % VICTIMS.length] ?? 'api-1'
        const run = await ada.say(session, 'write 60 words')
        const frames: Frame[] = []
        let chunks = 0
        let struck: readonly string[] = []
        const reader = browser(...waysTo(victim, processes))
        for (const pair of ada.cookies) reader.cookies.set(...pair)
        for await (const frame of reader.follow(run)) {
          frames.push(frame)
          if (frame.data.type !== 'step:chunk' || chunks++ !== n % CHUNKS) continue
          struck = await strike(victim, { processes, postgres, holder: await holderOf(ada, run) })
        }
        expect(struck, victim).not.toEqual([])
        expect(frames.at(-1), victim).toMatchObject({ event: 'done', data: { status: 'completed' } })
        expect(answerIn(frames)).toBe(WORDS)
        await Promise.all(struck.map((name) => processes.ready(name)))
        await expectNoGap(ada, run, frames)
        await expectKept(ada, run, WORDS)
        await expect.poll(() => shown(n), { message: victim }).toBe(answerIn(frames))
        await button(page, 'Stop').waitFor({ state: 'detached' })
      }
      await page.reload()
      await expect.poll(() => page.locator('.run').count()).toBe(kills)
      for (let n = 0; n < kills; n++) expect(await shown(n)).toBe(WORDS)
      // What was being answered when its server was killed.
      expect(complaints.splice(0).filter((text) => !text.includes('status of 500'))).toEqual([])
    })
  })
})

/** What the program says that seals keys and tokens with another key, and the code that it ends with. */
async function sealAnew(env: Env): Promise<{ readonly code: unknown; readonly told: string }> {
  const program = join(processes.folder, 'dist/keys.js')
  const ended = promisify(execFile)(process.execPath, [program], { env: { ...env } })
  return ended.then(
    ({ stdout }) => ({ code: 0, told: stdout }),
    ({ code, stdout }) => ({ code, told: stdout }),
  )
}

it('14.4: settings, logins and conversations are in no process', async () => {
  const ada = await browser().be('ada')
  const session = await ada.newSession()
  const settings = {
    provider: 'openai-compatible',
    base_url: 'https://api.openai.com/v1',
    model: 'm',
    reasoning: 'low',
  }
  await ada.send('PUT', '/api/settings', { ...settings, api_key: 'sk-of-ada' })
  for (const name of ['api-1', 'api-2', 'worker-1', 'worker-2']) await processes.kill(name)
  await Promise.all(processes.places.map(({ name }) => processes.ready(name)))
  for (const url of processes.apiUrls) {
    ada.urls = [url]
    expect((await ada.get('/api/me')).body.user.name).toBe('Ada')
    expect((await ada.get('/api/settings')).body).toEqual({ ...settings, has_api_key: true })
    expect((await ada.get(`/api/sessions/${session}`)).status).toBe(200)
  }
  const { env = {} } = processes.places.find(({ name }) => name === 'worker-1') ?? {}
  expect(await sealAnew(env)).toMatchObject({ code: 0, told: expect.stringContaining('"sealed anew","settings":0') })
  const lost = { ...env, SECRET_KEYS: `another:${'a'.repeat(32)}` }
  expect(await sealAnew(lost)).toMatchObject({ code: 1, told: expect.stringContaining('"unreadable","settings":1') })
  await ada.send('PUT', '/api/settings', {
    provider: 'demo',
    base_url: null,
    model: 'demo',
    reasoning: 'none',
    api_key: null,
  })
})

it.each(inLane(['sign-in', 'connect'] as const, (purpose) => purpose === 'connect'))(
  '14.4: a visit to %s that is begun at an instance which is killed then comes to its end at the other one',
  async (purpose) => {
    const [first = '', second = ''] = processes.apiUrls
    const alice = purpose === 'connect' ? await browser(first).be('ada') : browser(first)
    const back = await wayBack(alice, purpose, { returnTo: '/settings' })
    await processes.kill('api-1')
    alice.urls = [second]
    const arrival = await alice.fetch(`${back.pathname}${back.search}`)
    const location = `${origin}/settings${purpose === 'connect' ? '?connected=1' : ''}`
    expect(arrival.headers.get('location')).toBe(location)
    await processes.ready('api-1')
    alice.urls = [first]
    if (purpose === 'sign-in') expect((await alice.get('/api/me')).body.user.name).toBe('<b>alice</b>')
    else expect((await alice.get('/api/connection')).body.isConnected).toBe(true)
    const again = await alice.fetch(`${back.pathname}${back.search}`)
    expect(again.headers.get('location')).toBe(`${origin}/?oauth_error=state`)
    if (purpose === 'connect') await alice.send('DELETE', '/api/connection')
  },
)

it('an approval outlives all processes and the database, and its call is made once', async () => {
  const ada = await browser().be('ada')
  const given = JSON.stringify({ url: `http://${mailbox.host}/`, body: { text: 'after all of it' } })
  const run = await ada.say(await ada.newSession(), `/post_json ${given}`)
  await ada.until(run, isSuspended)
  const before = mailbox.got.length
  await postgres.stop('immediate')
  await Promise.all(processes.places.map(({ name }) => processes.kill(name)))
  await postgres.start()
  await Promise.all(processes.places.map(({ name }) => processes.ready(name)))
  const { approvals } = (await ada.get('/api/approvals')).body
  expect(approvals).toMatchObject([{ run_id: run, tool: 'post_json', why: 'approval' }])
  await ada.post(`/api/approvals/${run}/${encodeURIComponent(approvals[0].name)}`, { decision: 'approve' })
  await expect.poll(() => mailbox.got.length).toBeGreaterThan(before)
  mailbox.answer()
  const frames = await ada.ended(run)
  expect(frames.at(-1)).toMatchObject({ event: 'done', data: { status: 'completed' } })
  expect(piecesIn(frames).filter(isPiece('tool-result'))).toMatchObject([{ result: { status: 200 } }])
  expect(mailbox.got.slice(before)).toEqual([`${run}/1.1`])
})

describe('14.6: in prod', () => {
  it('the provider sends browsers to the public address, where any instance checks the state in the database', async () => {
    const origin = 'https://chat.example.com'
    const tls = selfSigned('localhost')
    const redirectUris = ['/api/oauth/sign-in/callback', '/api/oauth/openai/callback'].map((path) => `${origin}${path}`)
    const issuer = await startIssuer({ redirectUris, tls })
    const folder = await mkdtemp(join(tmpdir(), 'agentic-web-ca-'))
    await writeFile(join(folder, 'ca.pem'), tls.cert)
    const client = { ISSUER: issuer.url, CLIENT_ID: CLIENT.id, CLIENT_SECRET: CLIENT.secret }
    const prod = await startProcesses({
      services: ['api'],
      given: {
        ...{ PROFILE: 'prod', PUBLIC_URL: origin, DEMO_USERS: '0' },
        ...{ SECRET_KEYS: `k:${'k'.repeat(32)}`, LINK_SECRET: 'l'.repeat(32) },
        ...Object.fromEntries([...prefixed('SIGN_IN', client), ...prefixed('OPENAI_OAUTH', client)]),
      },
      own: { NODE_EXTRA_CA_CERTS: join(folder, 'ca.pem') },
    })
    onTestFinished(async () => {
      await Promise.all([prod.end(), issuer.end(), rm(folder, { recursive: true })])
    })

    const alice = new Browser(...prod.apiUrls)
    alice.origin = origin
    for (const purpose of ['sign-in', 'connect'] as const) {
      const back = await wayBack(alice, purpose, { ca: tls.cert })
      expect(back.href).toContain(`${origin}/api/oauth/`)
      const home = await alice.fetch(`${back.pathname}${back.search}`)
      expect(home.headers.get('location')).toBe(`${origin}/${purpose === 'connect' ? '?connected=1' : ''}`)
      if (purpose === 'sign-in') expect(home.headers.getSetCookie().join()).toMatch(/__Host-login=.*; Secure/)
      const again = await alice.fetch(`${back.pathname}${back.search}`)
      expect(again.headers.get('location')).toBe(`${origin}/?oauth_error=state`)
    }
    expect((await alice.get('/api/connection')).body.isConnected).toBe(true)
    expect((await alice.fetch('/auth/callback')).status).toBe(404)
    expect((await alice.post('/api/auth/demo', { user_id: 'demo-ada' })).status).toBe(404)
  })
})

it('14.5: the old contract tells the same as the new one', async () => {
  const ada = await browser().be('ada')
  const init = { method: 'POST', body: '{"message":"write 60 words"}', headers: { 'content-type': 'application/json' } }
  const frames: Frame[] = []
  for await (const frame of ada.frames('/api/chat/from-the-old-page', init)) frames.push(frame)
  const [first, ...old] = frames
  expect(first).toMatchObject({ event: 'run', data: { status: 'queued' } })
  expect(answerIn(old)).toBe(WORDS)
  await expectNoGap(ada, first?.data.run_id, old)
})

it('what a request starts is one trace, in whichever processes, and each line that is logged of it has its run', async () => {
  const ada = await browser().be('ada')
  const session_id = await ada.newSession()
  const [trace, caller] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7']
  const headers = { traceparent: `00-${trace}-${caller}-01`, 'content-type': 'application/json' }
  const body = JSON.stringify({ session_id, message: 'What is 20+22, and what of my secret-of-ada ?' })
  const started = (await (await ada.fetch('/api/runs', { method: 'POST', body, headers })).json()) as Answered
  await ada.ended(started.run_id)
  const told = () => collector.spans.filter(({ traceId }) => traceId === trace)
  await expect.poll(() => told().length).toBe(9)
  const named = (name: string) => told().find((span) => span.name === name)
  expect(named('POST /api/runs')).toMatchObject({ service: 'api', parentSpanId: caller })
  for (const name of ['run agent', 'attempt agent']) {
    expect(named(name)).toMatchObject({ service: 'worker', parentSpanId: named('POST /api/runs')?.spanId })
  }
  const steps = told().filter(({ name }) => name.startsWith('step '))
  expect(steps.map(({ name }) => name.slice('step '.length)).sort()).toEqual(
    ['turn 1', 'keep turn 1', 'tool 1.1', 'keep call 1.1', 'turn 2', 'keep turn 2'].sort(),
  )
  expect(new Set(steps.map(({ parentSpanId }) => parentSpanId))).toEqual(new Set([named('attempt agent')?.spanId]))
  expect(processes.lines.filter((line) => line.includes(`"run_id":"${started.run_id}"`)).join()).toContain(
    'run:complete',
  )
  expect(JSON.stringify([collector.spans, processes.lines])).not.toContain('secret-of-ada')
  // What was not told yet is told on the way out.
  for (const name of ['worker-1', 'worker-2']) await processes.kill(name, 'SIGTERM')
  await expect.poll(() => [...collector.metrics]).toContain('durably.runs.ended')
})
