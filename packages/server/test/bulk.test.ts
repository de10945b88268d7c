import { createMemoryStorage } from '@coji/durably-core/memory'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Granted } from '../src'
import { openApi, type ApiOptions } from './api'

const USERS: Readonly<Record<string, Granted>> = {
  ann: { actor: 'ann', tenant: 'acme', allow: 'all' },
  eve: { actor: 'eve', tenant: 'acme', allow: ['read', 'retry'] },
  ops: { actor: 'ops', tenant: null, allow: 'all' },
}

function openForBulk(options: ApiOptions = {}) {
  const api = openApi({
    authorize: ({ request }) => USERS[request.headers.get('authorization') ?? ''] ?? null,
    ...options,
  })
  const { durably } = api
  durably.defineJob({ name: 'job', input: z.unknown() }, () => 1)
  const many = (count: number, tenant: string, labels = {}) =>
    Promise.all(Array.from({ length: count }, () => durably.trigger('job', 1, { tenant, labels, delay: 3_600_000 })))
  const ask = (user: string, path: string, body: unknown) =>
    api.ask(`POST ${path}`, { body, headers: { authorization: user } })
  return { ...api, api, many, ask }
}

const cancelRed = { action: 'cancel', filter: { labels: { team: 'red' } } }

describe('a bulk action', () => {
  it('says first how many runs it would be about', async () => {
    const { many, ask } = openForBulk()
    await many(3, 'acme', { team: 'red' })
    await many(2, 'other', { team: 'red' })
    await many(1, 'acme')
    expect((await ask('ann', '/bulk/preview', cancelRed)).json).toEqual({ count: 3, isMore: false })
    expect((await ask('ops', '/bulk/preview', cancelRed)).json).toEqual({ count: 5, isMore: false })
    expect((await ask('ann', '/bulk/preview', { action: 'cancel', filter: {} })).json).toEqual({
      count: 4,
      isMore: false,
    })
  })

  it('is a run that does it batch by batch, to runs of the tenant that were there before', async () => {
    const { durably, many, ask } = openForBulk()
    await many(250, 'acme', { team: 'red' })
    const [other, blue] = [await many(1, 'other', { team: 'red' }), await many(1, 'acme', { team: 'blue' })]
    const { status, json } = await ask('ann', '/bulk', cancelRed)
    expect({ status, tenant: json.tenant }).toEqual({ status: 202, tenant: 'acme' })
    const late = await many(1, 'acme', { team: 'red' })
    await durably.runUntilIdle()
    const run = await durably.getRun(json.id)
    expect(run).toMatchObject({ status: 'completed', progress: { current: 250, total: 250 } })
    expect(run?.output).toEqual({ done: 250, skipped: 0 })
    expect((await durably.getSteps(json.id)).map(({ name }) => name)).toEqual(['batch 1', 'batch 2', 'batch 3'])
    for (const [spared] of [other, blue, late])
      expect(await durably.getRun(spared?.id ?? '')).toMatchObject({ status: 'pending' })
  })

  it('is about what was there before it, also within one millisecond', async () => {
    const now = Date.now()
    const { durably, many, ask } = openForBulk({ storage: createMemoryStorage({ now: () => now }) })
    const [before] = await many(1, 'acme')
    const { json } = await ask('ann', '/bulk', { action: 'cancel', filter: {} })
    const [after] = await many(1, 'acme')
    await durably.runUntilIdle()
    expect(new Set([json, before, after].map(({ createdAt }) => createdAt)).size).toBe(1)
    expect((await durably.getRun(json.id))?.output).toEqual({ done: 1, skipped: 0 })
    expect(await durably.getRun(after?.id ?? '')).toMatchObject({ status: 'pending' })
  })

  it('retries and deletes, and skips what is in no state for it', async () => {
    const { durably, many, ask } = openForBulk()
    const runs = await many(4, 'acme')
    for (const { id } of runs.slice(0, 3)) await durably.cancel(id)
    const result = async (action: string, filter = {}) => {
      const { json } = await ask('ops', '/bulk', { action, filter: { jobName: 'job', ...filter } })
      await durably.runUntilIdle()
      return (await durably.getRun(json.id))?.output
    }
    expect(await result('delete')).toEqual({ done: 3, skipped: 1 })
    await durably.cancel(runs[3]?.id ?? '')
    expect(await result('retry', { status: 'cancelled', tenant: 'acme' })).toEqual({ done: 1, skipped: 0 })
  })

  it('is for those who may do it to one run', async () => {
    const { durably, many, ask } = openForBulk()
    await many(1, 'acme')
    expect(await ask('eve', '/bulk', cancelRed)).toMatchObject({ status: 403 })
    expect((await ask('eve', '/bulk', { ...cancelRed, action: 'retry' })).status).toBe(202)
    expect((await ask('ann', '/bulk', { action: 'cancel', filter: { tenant: 'other' } })).status).toBe(403)
    expect((await ask('nobody', '/bulk', cancelRed)).status).toBe(401)
    expect(await durably.counts({ status: 'cancelled' })).toMatchObject({ cancelled: 0 })
  })

  it('is nothing that can be triggered or retried by hand, with a payload of ones own', async () => {
    const { durably, ask } = openForBulk()
    const payload = { ...cancelRed, actor: 'eve', isForEverybody: true, expected: 0 }
    expect((await ask('ann', '/runs', { jobName: 'durably:bulk', payload })).status).toBe(403)
    const { id } = (await ask('ann', '/bulk', cancelRed)).json
    await durably.cancel(id)
    expect((await ask('eve', `/runs/${id}/retry`, undefined)).status).toBe(403)
    expect((await ask('ann', `/runs/${id}/fork`, { payload })).status).toBe(403)
  })

  it('leaves bulk actions of others alone, which would act in their name', async () => {
    const { durably, ask } = openForBulk()
    const { id } = (await ask('ops', '/bulk', { action: 'delete', filter: { tenant: 'acme' } })).json
    await durably.cancel(id)
    const filter = { status: 'cancelled' }
    for (const action of ['retry', 'delete', 'cancel']) {
      const { json } = await ask('ops', '/bulk', { action, filter })
      await durably.runUntilIdle()
      expect((await durably.getRun(json.id))?.output, action).toEqual({ done: 0, skipped: 1 })
      expect(await durably.getRun(id), action).toMatchObject({ status: 'cancelled' })
      const named = { action, filter: { jobName: ['job', 'durably:bulk'] } }
      expect((await ask('ops', '/bulk', named)).status).toBe(403)
      expect((await ask('ops', '/bulk/preview', named)).status).toBe(403)
    }
  })

  it('is not served where the application says so', async () => {
    const { durably, ask, api } = openForBulk({ bulk: false })
    expect((await ask('ann', '/bulk', cancelRed)).status).toBe(501)
    expect((await ask('ann', '/bulk/preview', cancelRed)).status).toBe(501)
    expect(durably.jobs().map(({ name }) => name)).not.toContain('durably:bulk')
    const me = { headers: { authorization: 'ann' } }
    expect((await api.ask('GET /me', me)).json).toMatchObject({ bulk: false })
    // @ts-expect-error: what is no boolean
    expect(() => openForBulk({ bulk: 'no' })).toThrow('bulk must be true or false')
  })

  it('counts as far as lists are counted', async () => {
    const { durably, many, ask } = openForBulk()
    const asked: unknown[] = []
    const { counts } = durably.storage
    durably.storage.counts = (query) => {
      asked.push(query.upTo)
      return counts(query)
    }
    await many(1001, 'acme', { team: 'red' })
    expect((await ask('ann', '/bulk/preview', cancelRed)).json).toEqual({ count: 1000, isMore: true })
    await ask('ann', '/bulk', cancelRed)
    expect((await ask('ann', '/bulk/preview', { action: 'cancel', filter: {} })).json.isMore).toBe(false)
    expect(asked).toEqual([1000, 1000, 10_000])
  })

  it('goes on after a crash where it was', async () => {
    const { durably, many, ask } = openForBulk()
    await many(150, 'acme', { team: 'red' })
    const { id } = (await ask('ann', '/bulk', cancelRed)).json
    const off = durably.on('step:complete', ({ stepName }) => {
      if (stepName === 'batch 1') void durably.stop({ timeout: 0 })
    })
    durably.start()
    await expect.poll(() => durably.health().worker).toBe('stopped')
    off()
    await durably.runUntilIdle()
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed', output: { done: 150, skipped: 0 } })
  })
})

describe('what waits for people', () => {
  it('is listed with the signals that would let it go on', async () => {
    const api = openApi()
    api.durably.defineJob({ name: 'approve', input: z.unknown() }, (ctx) =>
      ctx.waitFor('approval of the boss', { signal: 'approval', schema: z.unknown(), timeout: 3_600_000 }),
    )
    const { id } = await api.durably.trigger('approve', 1, { labels: { team: 'red' } })
    await api.durably.runUntilIdle()
    const { waits, next } = (await api.ask('GET /waits')).json
    expect(next).toBeNull()
    expect(waits).toMatchObject([
      {
        run: { id },
        signals: [{ stepName: 'approval of the boss', signalName: 'approval', dueAt: expect.any(String) }],
      },
    ])
    expect((await api.ask('GET /waits?labels[team]=blue')).json.waits).toEqual([])
    await api.durably.signal(id, 'approval', 1)
    await api.durably.runUntilIdle()
    expect((await api.ask('GET /waits')).json.waits).toEqual([])
  })
})

it('lists the jobs it knows, with what they take', async () => {
  const api = openApi()
  api.durably.defineJob({ name: 'b', input: z.object({ to: z.string() }), version: '2' }, () => 1)
  api.durably.defineJob({ name: 'a', input: z.date() as never }, () => 1)
  expect((await api.ask('GET /jobs')).json.jobs).toEqual([
    { name: 'a', version: null, isExecutedHere: true, input: null },
    {
      ...{ name: 'b', version: '2', isExecutedHere: true },
      input: { type: 'object', properties: { to: { type: 'string' } }, required: ['to'] },
    },
  ])
})
