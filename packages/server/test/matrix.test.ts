import { expect, it } from 'vitest'
import { z } from 'zod'
import type { Granted } from '../src'
import type { Route } from '../src/route'
import { ROUTES } from '../src/routes'
import { type Api, openApi } from './api'
import { parkRun } from './parked'
import { may, METHODS, ROLES, sees } from './roles'

const OWNER = 'acme'

/** A body with which the route has something to do. */
const BODIES: Readonly<Record<string, unknown>> = {
  '/runs': { jobName: 'job', payload: 1 },
  '/runs/batch': { jobName: 'job', runs: [{ payload: 1 }, {}] },
  '/runs/:id/signal': { name: 'go' },
  '/runs/:id/fork': {},
  '/schedules/pause': { name: 'daily' },
  '/schedules/resume': { name: 'daily' },
  '/schedules/run': { name: 'daily' },
  '/inbox/replay': { type: 'paid' },
  '/bulk': { action: 'cancel', filter: {} },
  '/bulk/preview': { action: 'cancel', filter: {} },
}

const pending = async ({ durably }: Api) => (await durably.trigger('job', 1, { tenant: OWNER })).id
const parked = ({ durably }: Api) => parkRun(durably, { tenant: OWNER })
async function cancelled(api: Api): Promise<string> {
  const id = await pending(api)
  await api.durably.cancel(id)
  return id
}

/** A run in a state in which the route does something to it; of the others it has ended. */
const RUNS: Readonly<Record<string, (api: Api) => Promise<string>>> = {
  '/runs/:id/cancel': pending,
  '/runs/:id/signal': pending,
  '/runs/:id/unpark': parked,
  '/runs/:id/fail': parked,
}

/** Whether the bulk action of the body is allowed is asked beside what the route needs. */
function mayDoBulk(path: string, role: Granted): boolean {
  return path !== '/bulk' || may(role, 'cancel')
}

function statusOf(path: string, method: string, role: Granted | null): number {
  const route = ROUTES.find((each) => each.path === path && each.method === (method === 'HEAD' ? 'GET' : method))
  if (method === 'OPTIONS') return 204
  if (route === undefined) return 405
  // Links have a matrix of their own.
  if (route.action === null) return 400
  if (role === null) return 401
  if (!may(role, route.action)) return 403
  if (route.isAboutRun && !sees(role, OWNER)) return 404
  if (!mayDoBulk(path, role)) return 403
  // They have runs of all tenants in hand.
  if (path === '/workers' && role.tenant !== null) return 403
  // Only of one tenant there is a schedule of that name.
  if (path.startsWith('/schedules/') && role.tenant !== OWNER) return 404
  return route.status
}

async function open(role: Granted | null): Promise<Api> {
  const api = openApi({ authorize: () => role })
  const job = api.durably.defineJob({ name: 'job', input: z.unknown() }, () => 1)
  await api.schedules.create('daily', { job, payload: 1, every: 3_600_000, tenant: OWNER })
  return api
}

it.each(Object.entries(ROLES))('every route answers every method as the table says to: %s', async (_name, role) => {
  const api = await open(role)
  for (const path of new Set(ROUTES.map((route) => route.path))) {
    for (const method of METHODS) {
      const id = await (RUNS[path] ?? cancelled)(api)
      const before = await api.durably.getRun(id)
      const body = method === 'POST' ? { body: BODIES[path] } : {}
      const { status } = await api.ask(`${method} ${path.replace(':id', id)}`, body)
      expect(status, `${method} ${path}`).toBe(statusOf(path, method, role))
      const isWrite = method === 'POST' || method === 'DELETE'
      if (status >= 400 || !isWrite) expect(await api.durably.getRun(id), `${method} ${path}`).toEqual(before)
    }
  }
})

/** In an address or in a body. */
function takesTenant({ query, body }: Route): boolean {
  return [query, body].some((schema) => schema instanceof z.ZodObject && 'tenant' in schema.shape)
}

const FOREIGN = ROUTES.filter(takesTenant).map((route) => [`${route.method} ${route.path}`, route] as const)

it.each(FOREIGN)('%s has nothing for who asks it for another tenant', async (_name, { method, path }) => {
  const ask = async (api: Api) => {
    const content = { body: { ...Object(BODIES[path]), tenant: OWNER } }
    return method === 'GET' ? api.ask(`GET ${path}?tenant=${OWNER}`) : api.ask(`${method} ${path}`, content)
  }
  const api = await open(ROLES['stranger'] ?? null)
  const run = await cancelled(api)
  await api.durably.scoped({ tenant: OWNER, as: { actor: 'ann' } }).retry(run)
  await api.durably.publish({ type: 'paid', payload: 1, tenant: OWNER })
  await api.inbox.drain()
  const before = [await api.durably.getRuns(), await api.schedules.list(), await api.inbox.list()]
  const { status, json } = await ask(api)
  if (status === 200) expect(json).toEqual((await ask(openApi())).json)
  else expect(status).toBe(404)
  expect([await api.durably.getRuns(), await api.schedules.list(), await api.inbox.list()]).toEqual(before)
})

it('knows which routes take a tenant', () => {
  expect(FOREIGN.map(([name]) => name)).toEqual([
    'GET /runs',
    'GET /audit',
    'GET /schedules',
    'POST /schedules/pause',
    'POST /schedules/resume',
    'POST /schedules/run',
    'GET /inbox',
    'GET /inbox/stats',
    'POST /inbox/replay',
    'GET /stats',
    'GET /stats/history',
    'GET /waits',
  ])
})
