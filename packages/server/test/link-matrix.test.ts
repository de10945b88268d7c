import { expect, it } from 'vitest'
import { z } from 'zod'
import { SCALE } from '../../../test/scale'
import { signLink } from '../src'
import { type Api, ORIGIN, openApi } from './api'
import { FEW_ROLES, METHODS, ROLES } from './roles'

const SECRET = 'a secret that is long enough for it'

/** What it answers to who looks, and to who confirms. */
interface Kind {
  readonly get: number
  readonly post: number
  /** Its token; `id` is that of a run that waits. */
  token(api: Api, id: string): Promise<string>
}

async function tokenFor(id: string, options: Partial<Parameters<typeof signLink>[2]> = {}): Promise<string> {
  const address = await signLink({ id }, 'go', { expires: 60_000, secret: SECRET, url: ORIGIN, ...options })
  return new URL(address).searchParams.get('token') ?? ''
}

async function confirm({ ask }: Api, token: string): Promise<void> {
  expect((await ask(`POST /link?token=${token}`)).status).toBe(200)
}

const KINDS: Readonly<Record<string, Kind>> = {
  valid: { get: 200, post: 200, token: (_api, id) => tokenFor(id) },
  'of its wait': { get: 200, post: 200, token: (_api, id) => tokenFor(id, { step: 'go' }) },
  'of a wait that is to come': { get: 409, post: 409, token: (_api, id) => tokenFor(id, { step: 'later' }) },
  expired: { get: 410, post: 410, token: (_api, id) => tokenFor(id, { expires: new Date(Date.now() - 1) }) },
  'just used': {
    ...{ get: 200, post: 409 },
    async token(api, id) {
      const token = await tokenFor(id)
      await confirm(api, token)
      return token
    },
  },
  'beside one that was used': {
    ...{ get: 200, post: 409 },
    async token(api, id) {
      await confirm(api, await tokenFor(id))
      return tokenFor(id)
    },
  },
  'used long ago': {
    ...{ get: 409, post: 409 },
    async token(api, id) {
      const token = await tokenFor(id)
      await confirm(api, token)
      await api.durably.runUntilIdle()
      return token
    },
  },
  'of a run that was cancelled': {
    ...{ get: 409, post: 409 },
    async token({ durably }, id) {
      await durably.cancel(id)
      return tokenFor(id)
    },
  },
  'of a run that is gone': {
    ...{ get: 404, post: 404 },
    async token({ durably }, id) {
      await durably.cancel(id)
      await durably.deleteRun(id)
      return tokenFor(id)
    },
  },
  'of another run, with the signature of this one': {
    ...{ get: 403, post: 403 },
    async token({ durably }, id) {
      const other = await durably.trigger('ask', 1)
      const [[text], [, signature]] = [(await tokenFor(id)).split('.'), (await tokenFor(other.id)).split('.')]
      return `${text}.${signature}`
    },
  },
  'of somebody else': {
    ...{ get: 403, post: 403 },
    token: (_api, id) => tokenFor(id, { secret: 'another secret that is long enough' }),
  },
  none: { get: 400, post: 400, token: async () => '' },
}

function statusOf(method: string, { get, post }: Kind): number {
  if (method === 'OPTIONS') return 204
  if (method === 'GET' || method === 'HEAD') return get
  return method === 'POST' ? post : 405
}

/** Links ask nobody who they are. */
const WHO = SCALE === 'full' ? ROLES : FEW_ROLES
const CASES = Object.keys(WHO).flatMap((role) => Object.keys(KINDS).map((kind) => [kind, role] as const))

it.each(CASES)('a link that is %s is for whoever has it, also for %s', async (name, role) => {
  const kind = KINDS[name]
  if (kind === undefined) throw new Error(`There is no link that is ${name}.`)
  const api = openApi({ authorize: () => ROLES[role] ?? null, linkSecret: SECRET })
  const { durably, ask } = api
  durably.defineJob({ name: 'ask', input: z.unknown() }, (ctx) => ctx.waitFor('go', { schema: z.unknown() }))
  for (const method of METHODS) {
    // Of one who is nobody's customer but their own.
    const { id } = await durably.trigger('ask', 1, { tenant: 'somebody' })
    await durably.runUntilIdle()
    const token = await kind.token(api, id)
    const before = await durably.getRun(id)
    const foreign = await ask(`${method} /link?token=${token}`, { headers: { origin: 'https://other.test' } })
    if (method === 'POST') expect(foreign.status).toBe(403)
    expect(await durably.getRun(id)).toEqual(before)
    const { status } = await ask(`${method} /link?token=${token}`)
    expect(status, method).toBe(statusOf(method, kind))
    const hasAnswered = method === 'POST' && status === 200
    const now = await durably.getRun(id)
    if (hasAnswered) expect(now?.version).toBeGreaterThan(before?.version ?? 0)
    else expect(now).toEqual(before)
  }
})
