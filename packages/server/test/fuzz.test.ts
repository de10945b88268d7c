import { type Durably, isEnded } from '@coji/durably-core'
import fc from 'fast-check'
import { expect, it, onTestFinished, vi } from 'vitest'
import { z } from 'zod'
import { LONG_PATIENCE_MS, PATIENCE_MS } from '../../../test/pace'
import { reportSuite } from '../../../test/report'
import { scaled } from '../../../test/scale'
import { signLink } from '../src'
import { ROUTES } from '../src/routes'
import { ORIGIN, openApi } from './api'
import { expectAllDescribed } from './described'
import { type Ground, inFile, inMemory } from './fuzz-grounds'
import { anyRequest, type FuzzedRequest, USERS } from './fuzz-requests'
import { handles, handlesWhilePolled, usedHeap } from './left-behind'
import { parkRun } from './parked'

const REQUESTS = scaled({ quick: 20_000, full: 100_000 })

const GROUNDS: Readonly<Record<string, () => Ground>> = {
  'in memory, where everybody may do everything': inMemory,
  'in a file, with tenants and roles': inFile,
}
const REQUESTS_OF_EACH = REQUESTS / Object.keys(GROUNDS).length
/** Of each request as good as nothing stays: a run that nobody removes, or a request that somebody keeps, is more. */
const BYTES_LEFT = 1000

it.each(Object.entries(GROUNDS))(
  'no request breaks the server, hangs, or writes anything when it is refused: %s',
  { timeout: LONG_PATIENCE_MS },
  async (name, openGround) => {
    // As long as any stream is open, an interval is there for its signs of life.
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    onTestFinished(() => void vi.useRealTimers())
    const open = await handlesWhilePolled()
    const ground = openGround()
    const api = await openForFuzz(ground)
    const findIds = createPool(api.durably)
    const tally = { reached: 0, refused: 0, malformed: 0 }
    const done = new Set<string>()
    const property = fc.asyncProperty(anyRequest, async (fuzzed) => {
      const request = await toRequest(fuzzed, findIds)
      const line = `${fuzzed.user}: ${request.method} ${request.url}`
      const [reached, written] = [ground.reached(), ground.written()]
      const { status, text } = await textOf(await api.handler(request))
      if (ground.reached() > reached) tally.reached += 1
      expect(status, `${line} ${text}`).toBeLessThan(500)
      if (isToBeRefused(fuzzed)) {
        tally.malformed += 1
        expect(status, `${line} ${fuzzed.body.content}`).toBeGreaterThanOrEqual(400)
      }
      if (status < 300) done.add(`${fuzzed.method} ${fuzzed.path}`)
      if (status >= 400) tally.refused += 1
      if (status >= 400 || READS.includes(request.method)) expect(ground.written(), `${line} ${text}`).toBe(written)
      if (ground.access.authorize !== undefined) expectOwn(fuzzed.user, text)
      expectAllDescribed()
    })
    const heaps: number[] = []
    for (const numRuns of [REQUESTS_OF_EACH / 2, REQUESTS_OF_EACH / 2]) {
      // One that hangs is named.
      await fc.assert(property, { numRuns, endOnFailure: true, timeout: PATIENCE_MS })
      await expect.poll(() => vi.getTimerCount()).toBe(0)
      await expect.poll(handles).toBeLessThanOrEqual(open)
      heaps.push(usedHeap())
    }
    const [half = 0, end = 0] = heaps
    const bytesLeft = Math.round((end - half) / (REQUESTS_OF_EACH / 2))
    const { reached, refused, malformed } = tally
    reportSuite({
      ...{ suite: `fuzzed requests ${name}`, requests: REQUESTS_OF_EACH, refused },
      ...{ 'with a malformed body': malformed, 'reached the storage': reached, 'bytes left of each': bytesLeft },
    })
    expect(reached / REQUESTS_OF_EACH).toBeGreaterThan(0.3)
    expect(malformed).toBeGreaterThan(REQUESTS_OF_EACH / 50)
    const lines = ROUTES.map(({ method, path }) => `${method} ${path}`)
    expect(lines.filter((line) => !done.has(line))).toEqual([])
    expect(bytesLeft).toBeLessThan(BYTES_LEFT)
  },
)

const READS = ['GET', 'HEAD', 'OPTIONS']
const TENANTS = ['acme', 'other', '']
const LINK = { secret: 'a secret that is long enough for it', expires: 60_000, url: ORIGIN }

async function openForFuzz({ storage, access }: Ground) {
  const api = openApi({ storage, linkSecret: LINK.secret, ...access })
  const { durably, schedules } = api
  await durably.migrate()
  const job = durably.defineJob({ name: 'job', input: z.unknown() }, (ctx) => ctx.run('step', () => 1))
  durably.defineJob({ name: 'strict', input: z.object({ a: z.number() }) }, (ctx) =>
    ctx.waitFor('go', { schema: z.unknown() }),
  )
  for (const tenant of TENANTS) await schedules.create('daily', { job, payload: 1, every: 3_600_000, tenant })
  return api
}

/** The body of a link is the form of its page, and of no interest. */
function isToBeRefused({ method, path, body }: FuzzedRequest): boolean {
  return body.isMalformed && !READS.includes(method) && path !== '/link'
}

/** Nobody is told of runs of others. */
function expectOwn(user: string, text: string): void {
  const own = USERS[user]?.tenant
  if (own === null) return
  const foreign = TENANTS.filter((tenant) => tenant !== own).filter((tenant) => text.includes(`"tenant":"${tenant}"`))
  expect(foreign, `${user} ${text}`).toEqual([])
}

async function toRequest(fuzzed: FuzzedRequest, findIds: FindIds): Promise<Request> {
  const { method, path, which, parameters, body, headers, user } = fuzzed
  const ids = [...(await findIds(path)), ...NO_IDS]
  const id = ids[which % ids.length] ?? ''
  const search = new URLSearchParams(parameters.map(([name, value]): [string, string] => [name, value]))
  if (search.get('token') === 'signed') search.set('token', await tokenFor(id))
  const address = `${path.replace(':id', id)}${parameters.length === 0 ? '' : `?${search}`}`
  const hasBody = method !== 'GET' && method !== 'HEAD' && body.content !== undefined
  const request = new Request(`${ORIGIN}${address}`, { method, body: hasBody ? (body.content ?? null) : null })
  // That which a text brings along is not said by the request.
  request.headers.delete('content-type')
  const type = hasBody && body.type !== null ? { 'content-type': body.type } : {}
  // What is wrong with a body may be its type, or that it has none.
  const { 'content-type': _given, ...others } = headers
  const said = body.isMalformed ? { ...others, ...type } : { ...type, ...headers }
  for (const [name, value] of Object.entries({ ...said, authorization: user })) request.headers.set(name, value)
  return request
}

const NO_IDS = ['01J00000000000000000000000', 'x', '%', '..;', '__proto__', encodeURIComponent('ü/?#')]

async function tokenFor(id: string): Promise<string> {
  return new URL(await signLink({ id }, 'go', LINK)).searchParams.get('token') ?? ''
}

/** A stream is not read to its end. */
async function textOf(response: Response): Promise<{ readonly status: number; readonly text: string }> {
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
  if (isStream) await response.body?.cancel()
  return { status: response.status, text: isStream ? '' : await response.text() }
}

/** For so many requests the runs are looked for once. */
const REQUESTS_PER_LOOK = 8

type FindIds = (path: string) => Promise<readonly string[]>

/** A few runs in different states, kept up as the requests delete them; not so many that reading them takes all the time. */
function createPool(durably: Durably): FindIds {
  let known: readonly string[] = []
  let asked = 0
  return async (path) => {
    if (asked++ % REQUESTS_PER_LOOK === 0) known = await lookAt(durably)
    return /\/(unpark|fail)$/.test(path) ? [...known, ...(await parkedIn(durably))] : known
  }
}

async function lookAt(durably: Durably): Promise<readonly string[]> {
  const found = await durably.getRuns({ limit: 40 })
  if (found.length < 5) {
    for (let n = 0; n < 10; n++) await durably.trigger('job', n, { tenant: TENANTS[n % TENANTS.length] })
  }
  if (found.length === 40) {
    await durably.runUntilIdle()
    for (const { id, status } of found) if (!isEnded(status)) await durably.cancel(id).catch(() => {})
    await durably.purge()
  }
  return found.slice(0, 12).map(({ id }) => id)
}

async function parkedIn(durably: Durably): Promise<readonly string[]> {
  const [parked] = await durably.getRuns({ parked: true, limit: 1 })
  const id = parked?.id ?? (await parkRun(durably, { tenant: 'acme' }))
  // As many as there are others.
  return Array.from({ length: 12 }, () => id)
}
