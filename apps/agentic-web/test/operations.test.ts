import { execFile, spawnSync } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createDatabase, startOwnPostgres } from '../../../test/postgres'
import { SCALE } from '../../../test/scale'
import { removeExpired } from '../src/worker/housekeeping'
import { type Env, readApiConfig, readWorkerConfig } from '../src/config'
import type { Piece } from '../src/contract'
import { createServices } from '../src/api/app'
import { openDatabase } from '../src/database/open'
import { createLog } from '../src/log'
import { interpolate, readCompose } from '../src/local/compose'
import { placeAll } from '../src/local/places'
import { type Answered, answerIn, Browser, deployed, ENV, type Frame, isPiece } from './deployment'

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
    const message = told(readApiConfig, wrong)
    for (const name of ['DATABASE_URL', 'PORT', 'SECRET_KEYS', 'LINK_SECRET', 'DEMO_USERS']) {
      expect(message).toContain(`- ${name} `)
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
})

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
      if (service.name === 'web')
        expect(env['API_URLS']).toMatch(/^http:\/\/127\.0\.0\.1:\d+,http:\/\/127\.0\.0\.1:\d+$/)
    }
  })

  it('takes what the shell has set', () => {
    const text = ['$', '{URL:-http://localhost:$', '{PORT:-8080}}'].join('')
    expect(interpolate(text, {})).toBe('http://localhost:8080')
    expect(interpolate(text, { PORT: '9' })).toBe('http://localhost:9')
    expect(interpolate(text, { URL: 'https://a.test' })).toBe('https://a.test')
  })
})

describe('the Dockerfile', () => {
  // Minutes, and a network: what is installed is fetched anew.
  it.runIf(SCALE === 'full')('builds programs that start, in an empty folder', async () => {
    const root = await mkdtemp(join(tmpdir(), 'agentic-web-image-'))
    onTestFinished(() => rm(root, { recursive: true, force: true }))
    const lines = (await readFile(join(APP, 'Dockerfile'), 'utf8')).split('\n')
    const build = lines.slice(
      0,
      lines.findIndex((line) => line.endsWith(' AS app')),
    )
    for (const line of build) {
      const [, instruction, rest = ''] = /^(COPY|RUN) (.*)$/.exec(line) ?? []
      if (instruction === 'COPY') await copy(rest.split(' '), root)
      if (instruction === 'RUN') await promisify(execFile)('sh', ['-c', rest], { cwd: root, maxBuffer: 1e8 })
    }
    const dist = join(root, 'image/dist')
    await cp(join(root, 'apps/agentic-web/dist'), dist, { recursive: true })
    for (const program of ['api', 'worker']) {
      const { stderr } = await promisify(execFile)(process.execPath, [join(dist, `${program}.js`)], { env: {} }).catch(
        (error: { stderr: string }) => error,
      )
      expect(stderr).toContain('DATABASE_URL')
    }
    expect(await readFile(join(dist, 'web/index.html'), 'utf8')).toContain('<script')
  })

  it.runIf(SCALE === 'full' && canInstallInACopy())('gives workers a bubblewrap', async () => {
    const lines = (await readFile(join(APP, 'Dockerfile'), 'utf8')).split('\n')
    const stage = lines.slice(lines.findIndex((line) => line.endsWith(' AS worker')))
    const installs = stage.filter((line) => line.startsWith('RUN ')).map((line) => line.slice('RUN '.length))
    expect(installs).toHaveLength(1)
    const without = 'if command -v bwrap; then dpkg --remove --force-depends bubblewrap; fi; ! command -v bwrap'
    const script = [without, ...installs, 'bwrap --version'].join('\n')
    const { stdout } = await promisify(execFile)(...inACopyOfTheSystem(script), { maxBuffer: 1e8 })
    expect(stdout).toMatch(/^bubblewrap \d/m)
  })
})

/** Programs that are installed go into a layer above the system of this machine, which is thrown away with the name space. */
const IN_A_COPY_OF_THE_SYSTEM = [
  'layers=$(mktemp -d)',
  'mount -t tmpfs tmpfs "$layers"',
  'mkdir "$layers/changed" "$layers/own" "$layers/copy"',
  'mount -t overlay overlay -o "lowerdir=/,upperdir=$layers/changed,workdir=$layers/own" "$layers/copy"',
  'mount --rbind /dev "$layers/copy/dev"',
  'mount --rbind /proc "$layers/copy/proc"',
  'exec chroot "$layers/copy" sh -euc "$1"',
].join(' && ')

function inACopyOfTheSystem(script: string): readonly [string, readonly string[]] {
  return ['unshare', ['--mount', 'sh', '-c', IN_A_COPY_OF_THE_SYSTEM, 'sh', script]]
}

function canInstallInACopy(): boolean {
  return spawnSync(...inACopyOfTheSystem('command -v apt-get')).status === 0
}

async function copy(given: readonly string[], to: string): Promise<void> {
  const target = given.at(-1) ?? ''
  for (const path of given.slice(0, -1)) {
    const from = join(APP, '../..', path)
    const isInto = target.endsWith('/')
    const destination = isInto ? join(to, target, path.split('/').at(-1) ?? '') : join(to, target)
    await mkdir(dirname(destination), { recursive: true })
    const isWanted = (source: string) => !/\/(node_modules|dist|\.turbo)(\/|$)/.test(source)
    await cp(from, destination, { recursive: true, filter: isWanted })
  }
}

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
    const deployment = await deployed({ DEMO_WORD_MS: '2', DRAIN_MS: '0' })
    const [one, two] = await Promise.all([deployment.startApi(), deployment.startApi()])
    const first = await deployment.startWorker({ WORKER_ID: 'first' })
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
    const second = await deployment.startWorker({ WORKER_ID: 'second' })
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

  it('says whether it is ready, and refuses what it cannot do without a database', async () => {
    const deployment = await deployed()
    const { url } = await deployment.startApi()
    expect((await fetch(`${url}/healthz`)).status).toBe(200)
    expect((await fetch(`${url}/readyz`)).status).toBe(200)
    expect((await fetch(`${url}/api/nothing`)).status).toBe(401)
    expect(await (await fetch(`${url}/nothing`)).json()).toMatchObject({ code: 'NOT_FOUND' })
  })
})

it('a database that crashes in the middle of an answer takes nothing of it along', async () => {
  const postgres = await startOwnPostgres()
  onTestFinished(() => postgres.end())
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

const isSuspended = (piece: Piece): piece is Extract<Piece, { type: 'state' }> => {
  return piece.type === 'state' && piece.state === 'waiting'
}

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
    await removeExpired(database, { sessionDays: 30 })
    expect((await ada.get('/api/sessions')).body.sessions).toMatchObject([
      { session_id: young, state: 'completed' },
      { session_id: waiting, state: 'cancelled' },
    ])
    expect(await database.durably.getRuns({ labels: { session: old } })).toEqual([])
    expect((await ada.get(`/api/sessions/${old}/files`)).status).toBe(404)
    const files = await database.db.selectFrom('session_files').select('session_id').execute()
    expect(files).toEqual([{ session_id: young }])
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
