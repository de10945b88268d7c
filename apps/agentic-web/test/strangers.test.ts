import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { createApp, createServices } from '../src/api/app'
import { readApiConfig } from '../src/config'
import { openDatabase } from '../src/database/open'
import type { Tables } from '../src/database/tables'
import { type Answered, Browser, deploy, type Deployment, isPiece, isSuspended } from './deployment'

let deployment: Deployment & { end(): Promise<void> }
let url: string
let own: { session: string; run: string; name: string }
let ada: Browser

beforeAll(async () => {
  deployment = await deploy()
  url = (await deployment.startApi()).url
  // Its housekeeping, once a minute, is of no user.
  vi.useFakeTimers({ toFake: ['setInterval'] })
  await deployment.startWorker()
  vi.useRealTimers()
  ada = await new Browser(url).be('ada')
  const session = await ada.newSession()
  const before = await ada.say(session, 'note: mine')
  await ada.until(before, isPiece('asked'))
  await ada.post(`/api/approvals/${before}/approval%201.1`, { decision: 'approve' })
  await ada.ended(before)
  const run = await ada.say(session, 'note: mine, too')
  const { name } = await ada.until(run, isPiece('asked'))
  own = { session, run, name: encodeURIComponent(name) }
  await ada.until(run, isSuspended)
})
afterAll(() => deployment.end())

/** What each route with somebody's id in its address is asked with, as its owner might. */
function asks(): Readonly<Record<string, { path: string; body?: unknown }>> {
  const { session, run, name } = own
  return {
    'GET /api/sessions/:id': { path: `/api/sessions/${session}` },
    'PATCH /api/sessions/:id': { path: `/api/sessions/${session}`, body: { title: 'Hers' } },
    'DELETE /api/sessions/:id': { path: `/api/sessions/${session}` },
    'GET /api/sessions/:id/files': { path: `/api/sessions/${session}/files` },
    'GET /api/sessions/:id/files/:path{.+}': { path: `/api/sessions/${session}/files/notes.md` },
    'GET /api/runs/:id': { path: `/api/runs/${run}` },
    'GET /api/runs/:id/events': { path: `/api/runs/${run}/events` },
    'POST /api/runs/:id/cancel': { path: `/api/runs/${run}/cancel` },
    'POST /api/runs/:id/retry': { path: `/api/runs/${run}/retry` },
    'POST /api/runs': { path: '/api/runs', body: { session_id: session, message: 'hello' } },
    'POST /api/chat/:sessionId': { path: `/api/chat/${session}`, body: { message: 'hello' } },
    'POST /api/approvals/:runId/:name': { path: `/api/approvals/${run}/${name}`, body: { decision: 'approve' } },
    'POST /api/approvals/:runId/:name/link': { path: `/api/approvals/${run}/${name}/link` },
  }
}

/** An api whose statements are written down. */
async function listeningApi() {
  const config = readApiConfig(deployment.env)
  const database = await openDatabase(config)
  onTestFinished(() => database.close())
  const statements: string[] = []
  const db = new Kysely<Tables>({
    dialect: new PostgresDialect({ pool: database.pool }),
    log: ({ query }) => void statements.push(query.sql),
  })
  const app = createApp(createServices({ ...database, db }, config, () => {}))
  const ask = async (browser: Browser, path: string, init: RequestInit = {}) => {
    const cookie = [...browser.cookies].map((pair) => pair.join('=')).join('; ')
    statements.length = 0
    const response = await app.request(path, { ...init, headers: { ...init.headers, cookie } })
    return { response, statements: statements.filter((text) => !/from "logins"/.test(text)) }
  }
  return { ask, durably: database.durably, routes: app.routes.map(({ method, path }) => `${method} ${path}`) }
}

function requestFor(route: string): { readonly path: string; readonly init: RequestInit } {
  const { path, body } = asks()[route] ?? { path: '' }
  const [method = ''] = route.split(' ')
  const json = { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
  return { path, init: { method, ...(body !== undefined && json) } }
}

async function send(browser: Browser, route: string) {
  const { path, init } = requestFor(route)
  const response = await browser.fetch(path, init)
  const shown = { status: response.status, code: '' }
  if (response.status !== 200) shown.code = ((await response.json().catch(() => ({}))) as { code?: string }).code ?? ''
  else await response.body?.cancel()
  return shown
}

/** Asks by routes, with what their addresses have in the place of names. */
function writing(browser: Browser) {
  const written = new Set<string>()
  const write = async (route: string, names: Readonly<Record<string, string>>, body?: unknown): Promise<Answered> => {
    written.add(route)
    const [method = '', address = ''] = route.split(' ')
    const path = address.replace(/:(\w+)/g, (_, name) => encodeURIComponent(names[name] ?? ''))
    const json = { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
    const response = await browser.fetch(path, { method, ...(body !== undefined && json) })
    expect(response.ok, route).toBe(true)
    const text = await response.text()
    return /json/.test(response.headers.get('content-type') ?? '') ? JSON.parse(text) : text
  }
  return { write, written }
}

const TABLES_OF_USERS = /\b(sessions|messages|session_files|staged_files|settings|auth|forgotten_runs)\b/
const HAS_USER = /^insert into .*"user_id"|\b(?:user_id|tenant)"? = \$/s

describe('what is of one user', () => {
  it('is not there for another, on any route', async () => {
    const grace = await new Browser(url).be('grace')
    const withIds = (await listeningApi()).routes.filter((route) => /:/.test(route))
    expect(Object.keys(asks())).toEqual(expect.arrayContaining([...new Set(withIds)]))
    for (const route of Object.keys(asks())) {
      expect(await send(grace, route), route).toEqual({ status: 404, code: 'NOT_FOUND' })
      expect((await send(new Browser(url), route)).status, route).toBe(401)
    }
    for (const route of Object.keys(asks()).filter((each) => each.startsWith('GET'))) {
      expect((await send(ada, route)).status, route).toBe(200)
    }
  })

  it('is asked for with the user in each statement', async () => {
    const { ask } = await listeningApi()
    const mine = ['/api/sessions', '/api/approvals', '/api/settings', '/api/connection'].map((path) => ({
      path,
      init: {},
    }))
    const shown = Object.keys(asks()).filter((route) => route.startsWith('GET') && !route.endsWith('/events'))
    let seen = 0
    for (const { path, init } of [...mine, ...shown.map(requestFor)]) {
      const { response, statements } = await ask(ada, path, init)
      expect(response.status, path).toBe(200)
      for (const statement of statements) expect(statement).toMatch(/"(?:user_id|tenant)" = \$/)
      seen += statements.length
    }
    expect(seen).toBeGreaterThanOrEqual(mine.length + shown.length)
  })

  it('is written, and read by who answers, with the user in each statement', async () => {
    const heard = vi.spyOn(pg.Client.prototype, 'query')
    onTestFinished(() => heard.mockRestore())
    const { write, written } = writing(ada)
    const { session_id: id } = await write('POST /api/sessions', {}, {})
    const { run_id: runId } = await write('POST /api/runs', {}, { session_id: id, message: 'note: hers' })
    const { name } = await ada.until(runId, isPiece('asked'))
    await write('POST /api/approvals/:runId/:name/link', { runId, name })
    await write('POST /api/approvals/:runId/:name', { runId, name }, { decision: 'approve' })
    await ada.ended(runId)
    await write('POST /api/chat/:sessionId', { sessionId: id }, { message: 'hello' })
    const run = await ada.say(id, 'note: never mind')
    await write('POST /api/runs/:id/cancel', { id: run })
    await ada.ended(run)
    await write('POST /api/runs/:id/retry', { id: run })
    await write('PATCH /api/sessions/:id', { id }, { title: 'Hers' })
    await write('PUT /api/settings', {}, { provider: 'demo', base_url: null, model: 'demo', reasoning: 'none' })
    await write('DELETE /api/connection', {})
    await write('DELETE /api/sessions/:id', { id })
    const isOfUsers = (route: string) => /^(?!GET|ALL).* \/api\/(?!auth|oauth|durably)/.test(route)
    expect([...written]).toEqual(expect.arrayContaining((await listeningApi()).routes.filter(isOfUsers)))

    const queries = heard.mock.calls.map(([query]): string | { text: string } => query)
    const statements = queries.map((query) => (typeof query === 'string' ? query : query.text))
    const ofUsers = statements.filter((text) => TABLES_OF_USERS.test(text))
    for (const table of ['sessions', 'messages', 'session_files', 'staged_files', 'settings', 'auth']) {
      expect(ofUsers.some((text) => text.includes(`"${table}"`))).toBe(true)
    }
    expect(ofUsers.filter((text) => !HAS_USER.test(text))).toEqual([])
  })

  it('is not in lists and settings of another', async () => {
    const grace = await new Browser(url).be('grace')
    await ada.send('PUT', '/api/settings', {
      ...{ provider: 'openai-compatible', base_url: 'https://api.openai.com/v1', model: 'm', reasoning: 'none' },
      api_key: 'sk-of-ada',
    })
    expect((await grace.get('/api/sessions')).body).toEqual({ sessions: [], next: null })
    expect((await grace.get('/api/approvals')).body).toEqual({ approvals: [] })
    expect((await grace.get('/api/settings')).body).toMatchObject({ provider: 'demo', has_api_key: false })
    expect((await grace.get('/api/durably/runs')).body.runs).toEqual([])
    expect((await grace.get('/api/durably/waits')).body.waits).toEqual([])
    expect((await grace.get('/api/durably/stats')).body).toMatchObject({ completed: 0, pending: 0 })
    await ada.send('PUT', '/api/settings', { provider: 'demo', base_url: null, model: 'demo', reasoning: 'none' })
  })

  it('is not served to another by the hooks, and nobody does more there than read, stop and retry', async () => {
    const grace = await new Browser(url).be('grace')
    const { body: described } = await ada.get('/api/durably/openapi.json')
    const paths = Object.entries(described.paths as Record<string, Record<string, unknown>>)
    const ofRuns = paths.filter(([path]) => path.includes('{id}'))
    expect(ofRuns.length).toBeGreaterThan(8)
    for (const [path, methods] of ofRuns) {
      const address = `/api/durably${path.replace('{id}', own.run)}`
      for (const method of Object.keys(methods)) {
        const { status } = await grace.send(method.toUpperCase(), address, method === 'get' ? undefined : {})
        const isAllowed = method === 'get' || /\/(?:cancel|retry)$/.test(path)
        expect(status, `${method} ${path}`).toBe(isAllowed ? 404 : 403)
      }
    }
    for (const path of ['/signal', '/fork', '/unpark', '/fail']) {
      const body = { name: 'approval 1.1', payload: { decision: 'approve' } }
      expect((await ada.post(`/api/durably/runs/${own.run}${path}`, body)).status, path).toBe(403)
    }
    expect((await ada.post('/api/durably/runs', { jobName: 'agent', payload: {} })).status).toBe(403)
    expect((await ada.post('/api/durably/bulk', { action: 'cancel', filter: {} })).status).toBe(404)
  })

  it('stays where it is after all of that', async () => {
    expect((await ada.get(`/api/sessions/${own.session}`)).body).toMatchObject({
      title: 'note: mine',
      state: 'waiting',
    })
    expect((await ada.get(`/api/runs/${own.run}`)).body).toMatchObject({ isWaiting: true, isCancelRequested: false })
  })
})

it('what waits is listed by one statement, newest first, however much it is', async () => {
  for (const text of ['one', 'two'])
    await ada.until(await ada.say(await ada.newSession(), `note: ${text}`), isSuspended)
  const { ask, durably } = await listeningApi()
  const scoped = vi.spyOn(durably, 'scoped')
  const { response, statements } = await ask(ada, '/api/approvals')
  const { approvals } = (await response.json()) as Answered
  expect(approvals.map(({ session_title: title }: Answered) => title)).toEqual(['note: two', 'note: one', 'note: mine'])
  expect(approvals[0]).toMatchObject({ tool: 'write_file', arguments: { path: 'notes.md', text: 'two\n' } })
  expect(statements).toHaveLength(1)
  expect(scoped).not.toHaveBeenCalled()
  for (const { session_id } of approvals.slice(0, 2)) await ada.send('DELETE', `/api/sessions/${session_id}`)
})

describe('a page of another site', () => {
  it('writes nothing with the cookies of who looks at it', async () => {
    const forms = [
      { origin: 'https://evil.test', 'content-type': 'application/json' },
      { origin: 'null', 'content-type': 'application/json' },
      { origin: `${new URL('http://agentic.test').origin}.evil.test`, 'content-type': 'application/json' },
      { 'sec-fetch-site': 'cross-site', 'content-type': 'application/json' },
      { 'content-type': 'text/plain' },
      { 'content-type': 'application/x-www-form-urlencoded' },
    ]
    for (const headers of forms) {
      const body = JSON.stringify({ title: 'x' })
      const init = { method: 'POST', body, headers: headers as Record<string, string> }
      expect([400, 403], JSON.stringify(headers)).toContain((await ada.fetch('/api/sessions', init)).status)
    }
    expect((await ada.get('/api/sessions')).body.sessions).toHaveLength(1)
  })
})

it('too many runs of one user are refused, at all instances together, and another goes on', async () => {
  const second = await deployment.startApi({ RUNS_PER_MINUTE: '9' })
  const third = await deployment.startApi({ RUNS_PER_MINUTE: '9' })
  const { pool, close } = await openDatabase(readApiConfig(deployment.env))
  onTestFinished(close)
  // The minute begins with the first of these.
  await pool.query('delete from rate_limits')
  const grace = await new Browser(second.url, third.url).be('grace')
  const session_id = await grace.newSession()
  const answers = []
  for (let n = 0; n < 11; n++) answers.push((await grace.post('/api/runs', { session_id, message: 'hi' })).status)
  expect(answers).toEqual([...Array<number>(9).fill(202), 429, 429])
  ada.urls = [second.url]
  expect((await ada.post('/api/runs', { session_id: own.session, message: 'hi' })).status).toBe(202)
})
