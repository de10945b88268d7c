import { expect, it } from 'vitest'
import { z } from 'zod'
import { ACTIONS, type Granted } from '../src'
import type { Route } from '../src/route'
import { ROUTES } from '../src/routes'
import { openApi } from './api'

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

const ROLES: Readonly<Record<string, Granted | null>> = {
  nobody: null,
  reader: { tenant: 'acme', allow: 'read' },
  owner: { tenant: 'acme', allow: 'all' },
  operator: { tenant: null, allow: 'all' },
  stranger: { tenant: 'other', allow: 'all' },
  'without tenant': { tenant: '', allow: 'all' },
  'may nothing': { tenant: 'acme', allow: [] },
  ...Object.fromEntries(ACTIONS.map((action) => [`may ${action}`, { tenant: 'acme', allow: [action] }])),
}

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

/** Whether the bulk action of the body is allowed is asked beside what the route needs. */
function mayDoBulk(path: string, allow: Granted['allow']): boolean {
  return path !== '/bulk' || allow === 'all' || allow.includes('cancel')
}

function may(role: Granted, action: Route['action']): boolean {
  if (action === null) return true
  return role.allow === 'all' || (role.allow === 'read' ? action === 'read' : role.allow.includes(action))
}

function expectedOf(path: string, method: string, role: Granted | null): readonly number[] {
  const route = ROUTES.find((each) => each.path === path && each.method === (method === 'HEAD' ? 'GET' : method))
  if (method === 'OPTIONS') return [204]
  if (route === undefined) return [405]
  // Without a secret there are no links, whoever asks.
  if (route.action === null) return [400]
  if (role === null) return [401]
  if (!may(role, route.action)) return [403]
  if (route.isAboutRun && role.tenant !== null && role.tenant !== 'acme') return [404]
  if (!mayDoBulk(path, role.allow)) return [403]
  // They have runs of all tenants in hand.
  if (path === '/workers' && role.tenant !== null) return [403]
  // Only of one tenant there is a schedule of that name.
  if (path.startsWith('/schedules/') && role.tenant !== 'acme') return [404]
  // Not every command fits the state of the run.
  return route.method === 'GET' ? [200] : [200, 201, 202, 204, 409]
}

it('every route answers every method to every role as the table says', async () => {
  const paths = [...new Set(ROUTES.map(({ path }) => path))]
  for (const [name, role] of Object.entries(ROLES)) {
    const { durably, schedules, ask } = openApi({ authorize: () => role })
    const job = durably.defineJob({ name: 'job', input: z.unknown() }, () => 1)
    await schedules.create('daily', { job, payload: 1, every: 3_600_000, tenant: 'acme' })
    for (const path of paths) {
      for (const method of METHODS) {
        const { id } = await durably.trigger('job', 1, { tenant: 'acme' })
        await durably.cancel(id)
        const before = await durably.getRun(id)
        const body = method === 'POST' ? { body: BODIES[path] } : {}
        const { status } = await ask(`${method} ${path.replace(':id', id)}`, body)
        expect(expectedOf(path, method, role), `${name}: ${method} ${path}`).toContain(status)
        if (status >= 400) expect(await durably.getRun(id), `${name}: ${method} ${path}`).toEqual(before)
      }
    }
  }
})
