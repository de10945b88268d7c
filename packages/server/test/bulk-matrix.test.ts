import { expect, it } from 'vitest'
import { z } from 'zod'
import type { Granted } from '../src'
import { type Api, openApi } from './api'
import { may, ROLES, sees } from './roles'

const TENANTS = ['acme', 'other', '']
const ACTIONS = ['cancel', 'retry', 'delete'] as const
const PATHS = ['/bulk/preview', '/bulk']

/** Whose runs the filter names; `undefined`: nobody's in particular. */
const WHOSE = [undefined, ...TENANTS]

const CASES = Object.entries(ROLES).flatMap(([name, role]) => ACTIONS.map((action) => [name, action, role] as const))

interface Asked {
  readonly path: string
  readonly action: (typeof ACTIONS)[number]
  readonly whose: string | undefined
}

function statusOf({ path, action, whose }: Asked, role: Granted | null): number {
  if (role === null) return 401
  if (!may(role, 'read')) return 403
  if (path === '/bulk' && !may(role, action)) return 403
  if (whose !== undefined && !sees(role, whose)) return 403
  return path === '/bulk' ? 202 : 200
}

/** Those whose runs are counted, or changed. */
function concerned(asked: Asked, role: Granted | null): readonly string[] {
  if (role === null || statusOf(asked, role) >= 400) return []
  return TENANTS.filter((tenant) => sees(role, tenant) && (asked.whose ?? tenant) === tenant)
}

/** Of each tenant a run to which the action can be done. */
async function runsFor(action: Asked['action'], { durably }: Api, labels: Readonly<Record<string, string>>) {
  const trigger = async (tenant: string) => {
    const { id } = await durably.trigger('job', 1, { tenant, labels, delay: 3_600_000 })
    if (action !== 'cancel') await durably.cancel(id)
    return { tenant, id, version: (await durably.getRun(id))?.version }
  }
  return Promise.all(TENANTS.map(trigger))
}

it.each(CASES)(
  '%s may ask for a bulk %s of the runs they see, if they may do it to one',
  async (_name, action, role) => {
    const api = openApi({ authorize: () => role })
    const { durably, ask } = api
    durably.defineJob({ name: 'job', input: z.unknown() }, () => 1)
    for (const whose of WHOSE) {
      for (const path of PATHS) {
        const message = `${path} of ${whose}`
        const labels = { of: message }
        const runs = await runsFor(action, api, labels)
        const filter = { labels, ...(whose !== undefined && { tenant: whose }) }
        const { status, json } = await ask(`POST ${path}`, { body: { action, filter } })
        const due = concerned({ path, action, whose }, role)
        expect(status, message).toBe(statusOf({ path, action, whose }, role))
        if (status === 200) expect(json, message).toEqual({ count: due.length, isMore: false })
        await durably.runUntilIdle()
        const now = await Promise.all(runs.map(({ id }) => durably.getRun(id)))
        const changed = runs.filter(({ version }, index) => now[index]?.version !== version)
        expect(
          changed.map(({ tenant }) => tenant),
          message,
        ).toEqual(path === '/bulk' ? due : [])
      }
    }
  },
)
