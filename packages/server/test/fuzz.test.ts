import { createMemoryStorage, type MemoryStorage } from '@coji/durably-core/memory'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { reportSuite } from '../../../test/report'
import { scaled } from '../../../test/scale'
import { signLink } from '../src'
import type { Route } from '../src/route'
import { ROUTES } from '../src/routes'
import { expectDescribed, openApi, toRequest } from './api'

const REQUESTS = scaled({ quick: 20_000, full: 100_000 })

/** Calls that reach the storage, and those that change something. */
function watched(storage: MemoryStorage) {
  const seen = { calls: 0, writes: 0 }
  const wrap = <T extends object>(group: T): T =>
    new Proxy(group, {
      get(target, name, receiver) {
        const value: unknown = Reflect.get(target, name, receiver)
        if (name === 'watch') return value
        if (typeof value === 'object' && value !== null) return wrap(value)
        if (typeof value !== 'function') return value
        return async (...given: unknown[]) => {
          seen.calls += 1
          const answer = await value.apply(target, given)
          if (isWrite(String(name), answer)) seen.writes += 1
          return answer
        }
      },
    })
  return { storage: wrap(storage), seen }
}

/** Of a schedule, of messages, of a run: what is answered says whether anything was written. */
const WRITES: Readonly<Record<string, (answer: unknown) => boolean>> = {
  enqueue: () => true,
  fork: (answer) => answer !== null,
  command: (answer) => (answer as { readonly applied: boolean }).applied,
  send: (answer) => (answer as { readonly kept: boolean }).kept,
  change: (answer) => answer !== null,
  startByHand: (answer) => (answer as readonly string[]).length > 0,
  replay: (answer) => answer !== 0,
}

function isWrite(name: string, answer: unknown): boolean {
  return Object.hasOwn(WRITES, name) && WRITES[name]?.(answer) === true
}

const odd = fc.oneof(
  fc.string({ maxLength: 30 }),
  fc.constantFrom(
    '',
    '0',
    '-1',
    '1e3',
    'NaN',
    'null',
    '%00',
    '\u0000',
    '__proto__',
    'constructor',
    '🙈',
    'a'.repeat(600),
  ),
)

/** Mostly what makes sense, so that most requests get past the checks. */
const mostly = <T>(sensible: fc.Arbitrary<T>, other: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 12, arbitrary: sensible }, { weight: 1, arbitrary: other })

const PARAMETERS: Readonly<Record<string, readonly string[]>> = {
  status: ['pending', 'failed', 'completed'],
  jobName: ['job', 'other'],
  tenant: ['acme', ''],
  'labels[team]': ['red'],
  createdFrom: ['2020-01-01T00:00:00Z'],
  createdBefore: ['2999-01-01'],
  idPrefix: ['01M7SW6Q'],
  limit: ['1', '7'],
  errorCode: ['E_PAY'],
  waitsFor: ['retry', 'signal', 'time'],
  after: ['0', '3'],
  upTo: ['5'],
  token: ['signed'],
}

function parametersOf({ query }: Route): fc.Arbitrary<[string, string][]> {
  const shape = query instanceof z.ZodObject ? Object.keys(query.shape) : []
  const known = Object.keys(PARAMETERS).filter((name) => shape.includes(name.replace(/\[.*/, '')))
  const name = known.length === 0 ? odd : mostly(fc.constantFrom(...known), odd)
  const parameter = name.chain((each) => {
    const sensible = Object.hasOwn(PARAMETERS, each) ? (PARAMETERS[each] ?? []) : []
    return fc.tuple(fc.constant(each), sensible.length === 0 ? odd : mostly(fc.constantFrom(...sensible), odd))
  })
  const some = fc.array(parameter, { minLength: 1, maxLength: 3 })
  return known.length === 0 ? mostly(fc.constant<[string, string][]>([]), some) : some
}

const json = fc.oneof(fc.jsonValue({ maxDepth: 3 }), fc.constantFrom(undefined, null, { a: 1 }, [], 'text', 0))

const options = fc.record({ delay: json, priority: json, labels: json }, { requiredKeys: [] })
const ofSchedule = { name: mostly(fc.constant('daily'), odd), tenant: mostly(fc.constant(''), odd) }
const BODIES: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  '/runs': fc.record(
    { jobName: fc.constantFrom('job', 'job', 'strict', 'other', 'durably:bulk', ''), payload: json, options },
    { requiredKeys: ['jobName'] },
  ),
  '/runs/batch': fc.record({
    jobName: fc.constantFrom('job', 'job', 'strict', 'other', 'durably:bulk'),
    runs: fc.array(fc.record({ payload: json, options }, { requiredKeys: [] }), { maxLength: 3 }),
  }),
  '/schedules/pause': fc.record({ ...ofSchedule, because: odd }, { requiredKeys: ['name'] }),
  '/schedules/resume': fc.record(ofSchedule, { requiredKeys: ['name'] }),
  '/schedules/run': fc.record(ofSchedule, { requiredKeys: ['name'] }),
  '/inbox/replay': fc.record(
    { type: mostly(fc.constant('paid'), odd), tenant: odd, from: mostly(fc.constant('2020-01-01'), odd) },
    { requiredKeys: ['type'] },
  ),
  '/runs/:id/signal': fc.record({ name: fc.constant('go'), payload: json, dedupeKey: odd }, { requiredKeys: ['name'] }),
  '/runs/:id/fork': fc.record({ after: mostly(fc.constant('step'), odd), payload: json }, { requiredKeys: [] }),
}
const bulkBody = fc.record({
  action: mostly(fc.constantFrom('cancel', 'retry', 'delete'), odd),
  filter: fc.record(
    { status: mostly<unknown>(fc.constantFrom('failed', ['pending']), json), jobName: odd },
    { requiredKeys: [] },
  ),
})

function bodyOf({ path, method, body }: Route): fc.Arbitrary<unknown> {
  if (method === 'GET') return fc.constant(undefined)
  return body === null ? mostly(fc.constant(undefined), json) : mostly(BODIES[path] ?? bulkBody, json)
}

const headers = fc.record(
  {
    'content-type': fc.constantFrom('application/json', 'application/json; charset=utf-8', 'text/plain', 'x'),
    origin: fc.constantFrom('http://app.test', 'http://other.test', 'null', 'x'),
    'last-event-id': fc.constantFrom('0', '1', '99', 'x', '-1'),
  },
  { requiredKeys: [] },
)

const METHODS = ['GET', 'POST', 'DELETE', 'PUT', 'HEAD', 'OPTIONS']

const request = fc.constantFrom(...ROUTES).chain((route) =>
  fc.record({
    method: mostly(fc.constant<string>(route.method), fc.constantFrom(...METHODS)),
    path: mostly(fc.constant(route.path), fc.webPath()),
    which: fc.nat(),
    parameters: parametersOf(route),
    body: bodyOf(route),
    headers: mostly(fc.constant({}), headers),
  }),
)

it('no request breaks the server, hangs, or writes anything when it is refused', async () => {
  const { storage, seen } = watched(createMemoryStorage())
  const { durably, handler, schedules } = openApi({ storage, linkSecret: LINK.secret })
  const job = durably.defineJob({ name: 'job', input: z.unknown() }, (ctx) => ctx.run('step', () => 1))
  durably.defineJob({ name: 'strict', input: z.object({ a: z.number() }) }, (ctx) =>
    ctx.waitFor('go', { schema: z.unknown() }),
  )
  await schedules.create('daily', { job, payload: 1, every: 3_600_000 })
  let [reached, refused] = [0, 0]
  const done = new Set<string>()
  const statuses = new Map<number, number>()
  const property = fc.asyncProperty(request, async ({ method, path, which, parameters, body: sent, headers: own }) => {
    const { runs } = await pool(durably)
    const ids = [...runs, '01J00000000000000000000000', 'x', '%', '..;', '__proto__', encodeURIComponent('ü/?#')]
    const search = new URLSearchParams(parameters)
    if (search.get('token') === 'signed') search.set('token', await tokenFor(runs[which % runs.length] ?? 'x'))
    const address = `${path.replace(':id', ids[which % ids.length] ?? '')}${parameters.length === 0 ? '' : `?${search}`}`
    const content =
      method === 'GET' || method === 'HEAD' ? {} : { body: sent === undefined ? undefined : JSON.stringify(sent) }
    const [calls, writes] = [seen.calls, seen.writes]
    const response = await handler(toRequest(`${method} ${address}`, { ...content, headers: own }))
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
    const text = isStream ? '' : await response.text()
    if (isStream) await response.body?.cancel()
    const { status } = response
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
    if (seen.calls > calls) reached += 1
    expect(status, `${method} ${address} ${text}`).toBeLessThan(500)
    if (status < 300) done.add(`${method} ${path}`)
    if (status >= 400) {
      refused += 1
      expect(seen.writes, `${method} ${address} ${text}`).toBe(writes)
    }
    const isJson = response.headers.get('content-type')?.includes('json') === true && text !== ''
    if (isJson) expectDescribed(`${method} ${address}`, { status, headers: response.headers, json: JSON.parse(text) })
  })
  await fc.assert(property, { numRuns: REQUESTS, endOnFailure: true })
  reportSuite({ suite: 'fuzzed requests', requests: REQUESTS, refused, 'reached the storage': reached })
  expect(reached / REQUESTS).toBeGreaterThan(0.3)
  const lines = ROUTES.map(({ method, path }) => `${method} ${path}`)
  // No run is parked here.
  expect(lines.filter((line) => !done.has(line) && !/\/(unpark|fail)$/.test(line))).toEqual([])
  expect(process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length).toBeLessThan(10)
}, 1_800_000)

const LINK = { secret: 'a secret that is long enough for it', expires: 60_000, url: 'http://app.test' }

async function tokenFor(id: string): Promise<string> {
  return new URL(await signLink({ id }, 'go', LINK)).searchParams.get('token') ?? ''
}

/** A few runs in different states, kept up as the requests delete them; not so many that reading them takes all the time. */
async function pool(durably: ReturnType<typeof openApi>['durably']): Promise<{ readonly runs: readonly string[] }> {
  const found = await durably.getRuns({ limit: 40 })
  if (found.length < 5) for (let n = 0; n < 10; n++) await durably.trigger('job', n)
  if (found.length === 40) {
    await durably.runUntilIdle()
    for (const { id } of found) await durably.cancel(id).catch(() => {})
    await durably.purge()
  }
  return { runs: found.slice(0, 12).map(({ id }) => id) }
}
