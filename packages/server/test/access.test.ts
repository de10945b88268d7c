import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createDurablyHandler, type Granted } from '../src'
import { openApi, type ApiOptions } from './api'

const USERS: Readonly<Record<string, Granted>> = {
  ann: { actor: 'ann', tenant: 'acme', allow: 'all' },
  bob: { actor: 'bob', tenant: 'other', allow: 'all' },
  eve: { actor: 'eve', tenant: 'acme', allow: 'read' },
  ops: { actor: 'ops', tenant: null, allow: 'all' },
  cat: { actor: 'cat', tenant: 'acme', allow: ['read', 'cancel'] },
}

const as = (user: string) => ({ headers: { authorization: user } })

function openForUsers(options: ApiOptions = {}) {
  const api = openApi({
    authorize: ({ request }) => USERS[request.headers.get('authorization') ?? ''] ?? null,
    ...options,
  })
  api.durably.defineJob({ name: 'job', input: z.unknown() }, (ctx) => ctx.run('step', () => 1))
  return api
}

describe('an application that forgets to say who may do what', () => {
  it('gets no handler', () => {
    const { durably } = openApi()
    expect(() => createDurablyHandler(durably, {})).toThrow('needs authorize')
    expect(() => createDurablyHandler(durably, { authorize: undefined })).toThrow('needs authorize')
    expect(() => createDurablyHandler(durably, { allowAnonymous: true, authorize: () => null })).toThrow('not both')
    // @ts-expect-error: a door is not opened by chance.
    expect(() => createDurablyHandler(durably, { allowAnonymous: false })).toThrow('needs authorize')
  })

  it('shows nobody the runs of everybody', async () => {
    // @ts-expect-error: a session without a tenant.
    const { ask } = openForUsers({ authorize: () => ({ tenant: undefined, allow: 'all' }) })
    expect((await ask('GET /runs')).status).toBe(500)
    // @ts-expect-error: a misspelled permission.
    const other = openForUsers({ authorize: () => ({ tenant: null, allow: 'reed' }) })
    expect((await other.ask('GET /runs')).status).toBe(500)
  })
})

describe('who asks', () => {
  it('is told who they are and what they may do', async () => {
    const { ask } = openForUsers()
    expect((await ask('GET /me', as('eve'))).json).toEqual({
      actor: 'eve',
      tenant: 'acme',
      actions: ['read'],
      history: true,
      schedules: true,
      inbox: true,
      workers: false,
      bulk: true,
    })
    expect((await ask('GET /me', as('cat'))).json).toMatchObject({ actions: ['read', 'cancel'] })
    expect((await ask('GET /me', as('ops'))).json).toMatchObject({ tenant: null })
    expect(await ask('GET /me')).toMatchObject({ status: 401, json: { code: 'UNAUTHENTICATED' } })
  })

  it('sees runs of their tenant and no others, in any way', async () => {
    const { ask, durably } = openForUsers()
    const body = { jobName: 'job', payload: 1 }
    const { id } = (await ask('POST /runs', { body, ...as('ann') })).json
    expect(await durably.getRun(id)).toMatchObject({ tenant: 'acme' })
    expect((await ask('GET /runs', as('bob'))).json).toEqual({ runs: [], next: null })
    expect((await ask('GET /runs?tenant=acme', as('bob'))).json).toEqual({ runs: [], next: null })
    expect((await ask(`GET /runs?cursor=${id}`, as('bob'))).status).toBe(400)
    expect((await ask('GET /stats?tenant=acme', as('bob'))).json).toMatchObject({ pending: 0 })
    for (const line of [`GET /runs/${id}`, `GET /runs/${id}/events`, `POST /runs/${id}/cancel`, `DELETE /runs/${id}`]) {
      expect(await ask(line, as('bob')), line).toMatchObject({
        status: 404,
        json: { detail: `There is no run ${id}. It may have been deleted or purged.` },
      })
    }
    expect((await ask('GET /runs?tenant=acme', as('ops'))).json.runs).toHaveLength(1)
    expect((await ask(`POST /runs/${id}/cancel`, as('cat'))).json).toMatchObject({ status: 'cancelled' })
  })

  it('is asked again about the run itself', async () => {
    const { ask, durably } = openForUsers({
      authorize: ({ run }) =>
        run?.jobName === 'hidden' ? null : { tenant: null, allow: run?.jobName === 'job' ? 'read' : 'all' },
    })
    const [hidden, shown] = [await durably.trigger('hidden'), await durably.trigger('job')]
    expect((await ask(`GET /runs/${hidden.id}`)).status).toBe(404)
    expect((await ask(`GET /runs/${shown.id}`)).status).toBe(200)
    expect(await ask(`POST /runs/${shown.id}/cancel`)).toMatchObject({ status: 403, json: { code: 'FORBIDDEN' } })
  })
})

describe('writes from elsewhere', () => {
  const body = { jobName: 'job', payload: 1 }
  const write = async (headers: Record<string, string>, options: ApiOptions = {}) =>
    (await openForUsers(options).ask('POST /runs', { body, headers: { authorization: 'ann', ...headers } })).status

  it('come from the own origin, from origins that are listed, or from no page', async () => {
    expect(await write({})).toBe(201)
    expect(await write({ origin: 'http://app.test' })).toBe(201)
    expect(await write({ origin: 'https://app.test', host: 'app.test' })).toBe(201)
    expect(await write({ origin: 'https://other.test' })).toBe(403)
    expect(await write({ origin: 'null' })).toBe(403)
    expect(await write({ origin: 'null', 'sec-fetch-site': 'cross-site' })).toBe(403)
    expect(await write({ origin: 'null', 'sec-fetch-site': 'same-origin' })).toBe(201)
    expect(await write({ 'sec-fetch-site': 'cross-site' })).toBe(403)
    expect(await write({ 'sec-fetch-site': 'same-origin' })).toBe(201)
    expect(await write({ origin: 'https://other.test' }, { origins: ['https://other.test'] })).toBe(201)
  })

  it('are JSON, not too large, not too deep, and change no prototypes', async () => {
    const { ask, durably } = openForUsers({ maxBodyBytes: 10_000 })
    const post = async (content: string | Uint8Array, type = 'application/json') => {
      const { status, json } = await ask('POST /runs', {
        body: content,
        headers: { authorization: 'ann', 'content-type': type },
      })
      return [status, json.code]
    }
    const json = JSON.stringify(body)
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'application/jsonp',
    ])
      expect(await post(json, type), type).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE'])
    expect(await post('{')).toEqual([400, 'INVALID_REQUEST'])
    const noText = new TextEncoder().encode(json.replace('"job"', '"j\xffb"'))
    for (const [at, byte] of [
      [noText.indexOf(0xc3), 0xff],
      [noText.length - 1, 0xc3],
    ] as const)
      expect(await post(Uint8Array.from(noText, (own, index) => (index === at ? byte : own)))).toEqual([
        400,
        'INVALID_REQUEST',
      ])
    expect(await post('')).toEqual([400, 'INVALID_REQUEST'])
    expect(await post('null')).toEqual([400, 'INVALID_REQUEST'])
    expect(await post(JSON.stringify({ ...body, payload: 'x'.repeat(10_000) }))).toEqual([413, 'BODY_TOO_LARGE'])
    expect(await post(`{"jobName":"job","payload":${'['.repeat(71)}${']'.repeat(71)}}`)).toEqual([
      400,
      'INVALID_REQUEST',
    ])
    expect(await post('{"jobName":"job","payload":{"a":{"__proto__":{"x":1}}}}')).toEqual([400, 'INVALID_REQUEST'])
    expect(await post('{"jobName":"job","payload":{"\\u005f_proto__":1}}')).toEqual([400, 'INVALID_REQUEST'])
    expect(await post('{"jobName":"job","options":{"tenant":"other"}}')).toEqual([400, 'INVALID_REQUEST'])
    expect(await durably.getRuns()).toEqual([])
    expect(await post(json, 'application/json; charset=utf-8')).toEqual([201, undefined])
  })
})
