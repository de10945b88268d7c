import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { sql } from 'kysely'
import { parse } from 'yaml'
import { createDatabase, type OwnPostgres, startOwnPostgres } from '../../../test/postgres'
import { lookAfter, removeExpired } from '../src/worker/housekeeping'
import { type Env, readApiConfig, readWebConfig, readWorkerConfig, VARIABLES } from '../src/config'
import { createServices } from '../src/api/app'
import { openDatabase } from '../src/database/open'
import { createLog } from '../src/log'
import { interpolate, readCompose } from '../src/local/compose'
import { freePort } from '../src/local/free-port'
import { placeAll } from '../src/local/places'
import { type Answered, answerIn, Browser, deployed, ENV, type Frame, isPiece, isSuspended } from './deployment'

const APP = fileURLToPath(new URL('..', import.meta.url))
const COMPOSE = join(APP, 'docker-compose.yml')
const OF_DATABASE = { DATABASE_URL: 'postgres://localhost/app' }

function told(read: (env: Env) => unknown, env: Env): string {
  try {
    read(env)
  } catch (error) {
    return String(error)
  }
  return ''
}

/** What is said to be wrong, one line each. */
function linesOf(message: string): string[] {
  return [...message.matchAll(/^ {2}- (.*)$/gm)].map(([, line = '']) => line).sort()
}

function namesIn(message: string): string[] {
  return linesOf(message).map((line) => line.split(' ')[0] ?? '')
}

describe('a configuration', () => {
  it('that makes no sense is told of in one message, with everything that is wrong', () => {
    const wrong = {
      ...ENV,
      DATABASE_URL: 'mysql://x',
      PORT: 'x',
      SECRET_KEYS: undefined,
      LINK_SECRET: 'short',
      DEMO_USERS: 'yes',
    }
    expect(namesIn(told(readApiConfig, wrong))).toEqual([
      'DATABASE_URL',
      'DEMO_USERS',
      'LINK_SECRET',
      'PORT',
      'SECRET_KEYS',
    ])
    expect(namesIn(told(readWebConfig, { PORT: 'x', API_URLS: 'api:8080' }))).toEqual(['API_URLS.0', 'PORT'])
  })

  it('is told of all that does not go together, in the same message as of what is wrong by itself', () => {
    const api = {
      ...{ PROFILE: 'prod', PORT: 'x', DATABASE_URL: 'mysql://x', PUBLIC_URL: 'http://localhost:8080/chat' },
      ...{ DEMO_USERS: '1', SECRET_KEYS: 'for-development-only', LINK_SECRET: 'for-development-only' },
      ...{ SIGN_IN_ISSUER: 'http://id.test', OPENAI_OAUTH_CLIENT_ID: 'chat' },
    }
    expect(linesOf(told(readApiConfig, api))).toEqual([
      'DATABASE_URL must be the address of a Postgres (postgres://…)',
      'DEMO_USERS must be off in prod',
      'LINK_SECRET is the one for development, which everybody knows',
      'LINK_SECRET must have 32 characters or more',
      'OPENAI_OAUTH_ISSUER and OPENAI_OAUTH_CLIENT_ID belong together',
      'PORT Invalid input: expected number, received NaN',
      'PUBLIC_URL must be an origin, without a path',
      'PUBLIC_URL must be https in prod',
      'PUBLIC_URL must not be a loopback address in prod',
      'SECRET_KEYS has the key for development, which everybody knows',
      'SECRET_KEYS must be a list of id:key',
      'SIGN_IN_ISSUER and SIGN_IN_CLIENT_ID belong together',
      'SIGN_IN_ISSUER must be https in prod',
    ])
    const worker = { SECRET_KEYS: 'k:for-development-only', SANDBOX: 'docker', SANDBOX_USER: 'nobody', LEASE_MS: '1' }
    expect(linesOf(told(readWorkerConfig, { ...worker, OPENAI_OAUTH_ISSUER: 'http://id.test' }))).toEqual([
      'DATABASE_URL must be the address of a Postgres (postgres://…)',
      'LEASE_MS must be 1000 or more',
      'OPENAI_OAUTH_ISSUER and OPENAI_OAUTH_CLIENT_ID belong together',
      'OPENAI_OAUTH_ISSUER must be https in prod',
      'SANDBOX must be off or bwrap',
      'SANDBOX_USER must be two numbers, user:group, such as 65534:65534',
      'SECRET_KEYS has a key "k" with less than 32 characters',
      'SECRET_KEYS has the key for development, which everybody knows',
    ])
  })

  it('names whom a sandbox runs as, who is never root', () => {
    const given = { ...ENV, ...OF_DATABASE }
    expect(readWorkerConfig({ ...given, SANDBOX_USER: '1000:100' }).sandboxUser).toEqual({ uid: 1000, gid: 100 })
    expect(readWorkerConfig(given).sandboxUser).toBeNull()
    for (const SANDBOX_USER of ['0:100', '100:0']) {
      expect(told(readWorkerConfig, { ...given, SANDBOX_USER })).toContain('SANDBOX_USER must not be root')
    }
  })

  it.each([
    ['k:short', 'less than 32'],
    ['no-colon', 'id:key'],
    [`a:${'x'.repeat(32)},a:${'y'.repeat(32)}`, 'two keys'],
  ])('has keys to seal with: %s is refused', (SECRET_KEYS, why) => {
    expect(told(readWorkerConfig, { ...ENV, ...OF_DATABASE, SECRET_KEYS })).toContain(why)
  })

  it('lets nobody in by accident, and nobody out', () => {
    expect(told(readApiConfig, { ...ENV, ...OF_DATABASE, DEMO_USERS: '' })).toContain('nobody could sign in')
    expect(told(readApiConfig, { ...ENV, ...OF_DATABASE, SIGN_IN_ISSUER: 'https://id.test' })).toContain(
      'belong together',
    )
    expect(told(readApiConfig, { ...ENV, ...OF_DATABASE, PUBLIC_URL: 'https://a.test/chat' })).toContain('an origin')
  })

  it.each([
    ['prod', 'https://api.test/v1', ['must be an origin, without a path']],
    ['dev-local', 'http://localhost:9/v1', ['must be an origin, without a path']],
    ['prod', 'http://api.test', ['must be https in prod']],
    ['prod', 'https://127.0.0.1:9', ['must not be a loopback address in prod']],
    ['prod', 'http://LOCALHOST./', ['must be https in prod', 'must not be a loopback address in prod']],
    ['prod', 'ftp://api.test', ['must be the address of an api (https://…)']],
    ['prod', 'https://API.test/', []],
    ['dev-local', 'http://localhost:9', []],
  ])('sends tokens of users nowhere else: in %s to %s', (PROFILE, OPENAI_API_ORIGIN, troubles) => {
    const given = { ...ENV, ...OF_DATABASE, PROFILE, OPENAI_API_ORIGIN }
    expect(linesOf(told(readWorkerConfig, given))).toEqual(troubles.map((each) => `OPENAI_API_ORIGIN ${each}`))
    if (troubles.length === 0) {
      expect(readWorkerConfig(given).openaiOrigin).toBe(new URL(OPENAI_API_ORIGIN).origin)
    }
  })
})

/** What the configuration knows and docker-compose.yml has not. */
const NOT_IN_COMPOSE: Readonly<Record<string, string>> = {
  HOST: 'A container listens to all that reaches it.',
  WORKER_ID: 'A worker that is given no name makes one up.',
  DEAD_WORKER_ID: 'Docker does not tell a container which one it comes after.',
  DEMO_WORD_MS: 'Only tests have a reason to change it.',
  WEB_FOLDER: 'The image has the page beside the program.',
}

/** What is the same whatever the shell says: the containers know each other by it. */
const FIXED_IN_COMPOSE: Readonly<Record<string, string>> = {
  DATABASE_URL: 'The Postgres of the file.',
  PORT: 'What the health checks and the proxy ask.',
  HEALTH_PORT: 'What the health checks ask.',
  API_URLS: 'The apis of the file.',
}

/** The SDK reads them by itself. */
const READ_BY_OPEN_TELEMETRY = [
  'OTEL_EXPORTER_OTLP_HEADERS',
  'OTEL_SERVICE_NAME',
  'OTEL_RESOURCE_ATTRIBUTES',
  'OTEL_TRACES_SAMPLER',
  'OTEL_TRACES_SAMPLER_ARG',
  'OTEL_BSP_SCHEDULE_DELAY',
]

/** All that a kind of process reads, by itself or by what it is made of. */
const READ = {
  api: [...VARIABLES.api, ...READ_BY_OPEN_TELEMETRY],
  worker: [...VARIABLES.worker, ...READ_BY_OPEN_TELEMETRY],
  web: VARIABLES.web,
}

describe('docker-compose.yml', () => {
  it('is a configuration that makes sense, for every process of it', async () => {
    const services = readCompose(await readFile(COMPOSE, 'utf8'), {})
    const places = await placeAll(
      services.filter(({ name }) => name !== 'postgres'),
      'postgres://localhost/app',
    )
    expect(places.map(({ name }) => name)).toEqual(['api-1', 'api-2', 'worker-1', 'worker-2', 'web-1'])
    for (const { service, env } of places) {
      if (service.name === 'api') readApiConfig(env)
      if (service.name === 'worker') readWorkerConfig(env)
      if (service.name === 'web') {
        const here = expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/)
        expect(readWebConfig(env).apiUrls).toEqual([here, here])
      }
    }
  })

  const ofService = async (name: keyof typeof VARIABLES, env: Env = {}) => {
    const services = readCompose(await readFile(COMPOSE, 'utf8'), env)
    return services.find((service) => service.name === name)?.environment ?? {}
  }

  it.each(['api', 'worker', 'web'] as const)('hands on what the shell has set of all that %s reads', async (name) => {
    const shell = Object.fromEntries(READ[name].map((variable) => [variable, `set ${variable}`]))
    const [preset, set] = [await ofService(name), await ofService(name, shell)]
    expect(READ[name]).toEqual(expect.arrayContaining(Object.keys(preset)))
    for (const variable of READ[name]) {
      if (variable in NOT_IN_COMPOSE) expect(preset).not.toHaveProperty(variable)
      else if (variable in FIXED_IN_COMPOSE) expect(set[variable]).toBe(preset[variable])
      else expect(set[variable]).toBe(`set ${variable}`)
    }
  })

  it('has nothing that docs/deploy.md does not say', async () => {
    const docs = await readFile(join(APP, 'docs/deploy.md'), 'utf8')
    const isSaid = (name: string) => docs.includes(`\`${name}\``)
    expect([...Object.values(READ).flat(), 'STOP_GRACE_PERIOD'].filter((name) => !isSaid(name))).toEqual([])
    const [, said = ''] = /The other variables that its SDK has are read, too: (.*?)\.\s/s.exec(docs) ?? []
    expect([...said.matchAll(/OTEL_\w+/g)].map(([name]) => name)).toEqual(READ_BY_OPEN_TELEMETRY)
  })

  it('leaves workers the time to give back what they are at, however long they may take', async () => {
    const { worker } = parse(await readFile(COMPOSE, 'utf8'), { merge: true }).services
    const graceOf = (env: Env) => interpolate(worker.stop_grace_period, env)
    const { drainMs } = readWorkerConfig({ ...ENV, ...OF_DATABASE })
    expect(graceOf({})).toMatch(/^\d+s$/)
    expect(Number.parseInt(graceOf({}), 10) * 1000).toBeGreaterThanOrEqual(drainMs + 5000)
    expect(graceOf({ STOP_GRACE_PERIOD: '90s' })).toBe('90s')
  })

  it('gives the rights that a sandbox needs only with docker-compose.sandbox.yml, to workers, as its docs say', async () => {
    const { services } = parse(await readFile(join(APP, 'docker-compose.sandbox.yml'), 'utf8'))
    expect(Object.keys(services)).toEqual(['worker'])
    expect(services.worker.environment).toEqual({ SANDBOX: 'bwrap' })
    const docs = await readFile(join(APP, 'docs/sandbox-isolation.md'), 'utf8')
    for (const option of services.worker.security_opt) expect(docs).toContain(option)
    expect(await readFile(COMPOSE, 'utf8')).not.toMatch(/unconfined|privileged|cap_add/)
  })

  it('takes what the shell has set', () => {
    const text = ['$', '{URL:-http://localhost:$', '{PORT:-8080}}'].join('')
    expect(interpolate(text, {})).toBe('http://localhost:8080')
    expect(interpolate(text, { PORT: '9' })).toBe('http://localhost:9')
    expect(interpolate(text, { URL: 'https://a.test' })).toBe('https://a.test')
  })
})

it('an instance that starts has all tables from one migration, which one process makes at a time', async () => {
  const database = await createDatabase()
  onTestFinished(() => database.drop())
  const config = readApiConfig({ ...ENV, DATABASE_URL: database.url })
  const opened = await Promise.all(Array.from({ length: 4 }, () => openDatabase(config)))
  onTestFinished(async () => {
    for (const one of opened) await one.close()
  })
  const tables = async () => (await opened[0]?.db.introspection.getTables())?.map(({ name }) => name).sort()
  const before = await tables()
  expect(before).toContain('rate_limits')
  for (const one of opened)
    await createServices(
      one,
      config,
      createLog('test', () => {}),
    ).limits.signIn('127.0.0.1')
  expect(await tables()).toEqual(before)
})

describe('an instance that goes', () => {
  it('ends its streams so that they go on elsewhere, and gives back what it was at', async () => {
    const deployment = await deployed({ DRAIN_MS: '0' })
    const [one, two] = await Promise.all([deployment.startApi(), deployment.startApi()])
    // It would take longer than everything here, and the second one no time.
    const first = await deployment.startWorker({ WORKER_ID: 'first', DEMO_WORD_MS: '250' })
    const ada = await new Browser(one.url).be('ada')
    const run = await ada.say(await ada.newSession(), 'write 400 words')
    const seen: number[] = []
    for await (const { id, event, data } of ada.frames(`/api/runs/${run}/events`)) {
      expect(event).not.toBe('done')
      if (id !== null) seen.push(id)
      if (data.type === 'step:chunk' && ada.urls[0] === one.url) {
        ada.urls = [two.url]
        void one.stop()
      }
    }
    const second = await deployment.startWorker({ WORKER_ID: 'second', DEMO_WORD_MS: '0' })
    await first.stop()
    const rest = []
    const after = { headers: { 'last-event-id': String(seen.at(-1)) } }
    for await (const frame of ada.frames(`/api/runs/${run}/events`, after)) rest.push(frame)
    expect(rest.at(-1)).toMatchObject({ event: 'done', data: { status: 'completed' } })
    const types = rest.map(({ data }) => data.type)
    expect(types).toContain('run:release')
    expect(types).not.toContain('run:recover')
    expect(rest.slice(0, -1).map(({ id }) => id)).toEqual(rest.slice(0, -1).map((_, n) => (seen.at(-1) ?? 0) + n + 1))
    await second.stop()
  })

  it('says whether it is there, and ready, and what it has not', async () => {
    const deployment = await deployed()
    const { url } = await deployment.startApi()
    expect((await fetch(`${url}/healthz`)).status).toBe(200)
    expect((await fetch(`${url}/readyz`)).status).toBe(200)
    expect((await fetch(`${url}/api/nothing`)).status).toBe(401)
    expect(await (await fetch(`${url}/nothing`)).json()).toMatchObject({ code: 'NOT_FOUND' })
  })
})

describe('a database that is gone', () => {
  let postgres: OwnPostgres
  beforeAll(async () => {
    postgres = await startOwnPostgres()
  })
  afterAll(() => postgres.end())

  it('takes nothing along of an answer in whose middle it crashes', async () => {
    const database = await postgres.createDatabase()
    const deployment = await deployed({ DATABASE_URL: database.url, DEMO_WORD_MS: '2' })
    const { url } = await deployment.startApi()
    await deployment.startWorker({ LEASE_MS: '2000' })
    const ada = await new Browser(url).be('ada')
    const session = await ada.newSession()
    const run = await ada.say(session, 'write 300 words')
    const frames: Frame[] = []
    let crash: Promise<void> | null = null
    for await (const frame of ada.follow(run)) {
      frames.push(frame)
      if (frame.data.type === 'step:chunk') crash ??= postgres.restart('immediate')
    }
    await crash
    expect(frames.at(-1)).toMatchObject({ event: 'done', data: { status: 'completed' } })
    expect(frames.slice(0, -1).map(({ id }) => id)).toEqual(frames.slice(0, -1).map((_, n) => n + 1))
    const { body } = await ada.get(`/api/sessions/${session}`)
    expect(body.messages.map(({ content }: Answered) => content.role)).toEqual(['user', 'assistant'])
    expect(body.messages[1].content.text).toBe(answerIn(frames))
    expect(answerIn(frames)).toMatch(/ word-300$/)
  })

  it('leaves its processes there, which are not ready, until it is back', async () => {
    const database = await postgres.createDatabase()
    const deployment = await deployed({ DATABASE_URL: database.url })
    const { url } = await deployment.startApi()
    const HEALTH_PORT = String(await freePort())
    await deployment.startWorker({ HEALTH_PORT })
    const ada = await new Browser(url).be('ada')
    const addresses = [`${url}/healthz`, `${url}/readyz`, `http://127.0.0.1:${HEALTH_PORT}/readyz`]
    const answers = () => Promise.all(addresses.map(async (address) => (await fetch(address)).status))
    expect(await answers()).toEqual([200, 200, 200])
    await postgres.stop('immediate')
    expect((await answers()).slice(0, 2)).toEqual([200, 503])
    await expect.poll(answers).toEqual([200, 503, 503])
    expect((await ada.get('/api/sessions')).body).toMatchObject({ code: 'UNAVAILABLE' })
    await postgres.start()
    await expect.poll(answers).toEqual([200, 200, 200])
    expect(answerIn(await ada.ended(await ada.say(await ada.newSession(), 'hello')))).toContain('hello')
  })
})

describe('what is kept', () => {
  it('of a session that nobody has used for long goes, and of one in use stays', async () => {
    const deployment = await deployed()
    const { url } = await deployment.startApi()
    await deployment.startWorker()
    const ada = await new Browser(url).be('ada')
    const [old, young] = [await ada.newSession(), await ada.newSession()]
    for (const session of [old, young]) {
      const run = await ada.say(session, 'note: keep me')
      await ada.until(run, isPiece('asked'))
      await ada.post(`/api/approvals/${run}/approval%201.1`, { decision: 'approve' })
      await ada.ended(run)
    }
    const database = await openDatabase(readApiConfig(deployment.env))
    onTestFinished(() => database.close())
    const long = new Date(Date.now() - 31 * 86_400_000)
    await database.db.updateTable('sessions').set({ updated_at: long }).where('session_id', '=', old).execute()
    const waiting = await ada.newSession()
    await ada.until(await ada.say(waiting, 'note: ask me'), isSuspended)
    // What came last has ended, and what was before it still waits.
    await ada.post(`/api/runs/${await ada.say(waiting, 'never mind')}/cancel`)
    await database.db.updateTable('sessions').set({ updated_at: long }).where('session_id', '=', waiting).execute()
    const household = { ...database, tools: [], config: { sessionDays: 30 }, log: () => {}, everyMs: 100 }
    onTestFinished(await lookAfter(household))
    await expect
      .poll(async () => (await ada.get('/api/sessions')).body.sessions)
      .toMatchObject([
        { session_id: young, state: 'completed' },
        { session_id: waiting, state: 'cancelled' },
      ])
    // They go a moment after their session.
    await expect.poll(() => database.durably.getRuns({ labels: { session: old } })).toEqual([])
    expect((await ada.get(`/api/sessions/${old}/files`)).status).toBe(404)
    const files = await database.db.selectFrom('session_files').select('session_id').execute()
    expect(files).toEqual([{ session_id: young }])
  })

  it('of what a call has written is there for as long as its run can still go on', async () => {
    const deployment = await deployed()
    const { url } = await deployment.startApi()
    await deployment.startWorker()
    const ada = await new Browser(url).be('ada')
    const database = await openDatabase(readApiConfig(deployment.env))
    onTestFinished(() => database.close())
    const { db } = database
    const session = await ada.newSession()
    const ended = await ada.say(session, 'hello')
    await ada.ended(ended)
    await sql`alter table session_files add constraint full_disk check (false) not valid`.execute(db)
    const run = await ada.say(session, 'note: keep me')
    await ada.until(run, isPiece('asked'))
    await ada.post(`/api/approvals/${run}/approval%201.1`, { decision: 'approve' })
    // The call is over; its result, and its files, could not be kept.
    expect((await ada.ended(run)).at(-1)).toMatchObject({ data: { status: 'failed' } })
    await sql`alter table session_files drop constraint full_disk`.execute(db)

    const { user_id } = await db.selectFrom('sessions').select('user_id').executeTakeFirstOrThrow()
    const left = { session_id: session, user_id, path: 'left.md', content: null }
    const lost = [ended, 'a-run-that-is-gone'].map((of) => ({ ...left, call_key: `${of}/1.1/start` }))
    await db.insertInto('staged_files').values(lost).execute()
    await db
      .updateTable('staged_files')
      .set({ created_at: new Date(Date.now() - 2 * 86_400_000) })
      .execute()
    await removeExpired(database, { sessionDays: 30 })

    const staged = await db.selectFrom('staged_files').select('call_key').execute()
    expect(staged).toEqual([{ call_key: expect.stringContaining(`${run}/1.1/`) }])
    expect((await ada.post(`/api/runs/${run}/retry`)).status).toBe(200)
    expect((await ada.ended(run)).at(-1)).toMatchObject({ data: { status: 'completed' } })
    const { files } = (await ada.get(`/api/sessions/${session}/files`)).body
    expect(files).toHaveLength(1)
    expect(await db.selectFrom('staged_files').select('call_key').execute()).toEqual([])
  })

  it('of a session that is deleted goes with it, also while it is answered', async () => {
    const deployment = await deployed({ DEMO_WORD_MS: '2' })
    const { url } = await deployment.startApi()
    await deployment.startWorker()
    const ada = await new Browser(url).be('ada')
    const session = await ada.newSession()
    await ada.ended(await ada.say(session, 'hello'))
    const run = await ada.say(session, 'write 5000 words')
    await ada.until(run, isPiece('text'))
    expect((await ada.send('DELETE', `/api/sessions/${session}`)).status).toBe(204)
    // A message that comes in the same moment is taken along, or finds no session.
    for (let round = 0; round < 10; round++) {
      const session_id = await ada.newSession()
      const say = () => ada.post('/api/runs', { session_id, message: 'note: and this?' })
      await Promise.all([say(), say(), ada.send('DELETE', `/api/sessions/${session_id}`), say()])
    }
    expect((await ada.get('/api/sessions')).body.sessions).toEqual([])
    const database = await openDatabase(readApiConfig(deployment.env))
    onTestFinished(() => database.close())
    expect(await database.db.selectFrom('messages').selectAll().execute()).toEqual([])
    // The run goes when its worker has heard that it is to end: at once, or with the next round.
    const runsLeft = async () => {
      await removeExpired(database, { sessionDays: 30 })
      return database.durably.getRuns()
    }
    await expect.poll(runsLeft).toEqual([])
  })
})
