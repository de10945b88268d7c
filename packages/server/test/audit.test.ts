import { createMemoryStorage } from '@coji/durably-core/memory'
import { InvalidOptionError, type LogArchive, LogArchiveError } from '@coji/durably-core'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createDurablyClient } from '../src/client'
import { openApi } from './api'

/** Who asks is who the header says. */
function named(options: Parameters<typeof openApi>[0] = {}) {
  const api = openApi({
    ...options,
    authorize: ({ request }) => {
      const [actor, tenant = null] = (request.headers.get('x-user') ?? '').split('@')
      return { ...(actor !== '' && { actor }), tenant, allow: 'all' }
    },
  })
  api.durably.defineJob({ name: 'job', input: z.unknown() }, () => Promise.reject(new Error('no')))
  async function failed(tenant = ''): Promise<string> {
    const { id } = await api.durably.trigger('job', {}, { tenant })
    await api.durably.runUntilIdle()
    return id
  }
  return { ...api, failed, as: (user: string) => ({ headers: { 'x-user': user } }) }
}

describe('what operators do over HTTP', () => {
  it('is kept in the name that authorize() gave, and listed page by page', async () => {
    const { ask, as, failed } = named()
    const id = await failed('acme')
    expect((await ask(`POST /runs/${id}/retry`, as('ann@acme'))).status).toBe(200)
    expect((await ask(`POST /runs/${id}/cancel`, as('bob'))).status).toBe(200)
    expect((await ask(`DELETE /runs/${id}`, as('ann@acme'))).status).toBe(204)
    const first = await ask('GET /audit?limit=2', as('bob'))
    expect(first.json.entries).toMatchObject([
      { actor: 'ann', action: 'deleteRun', target: id, tenant: 'acme', before: { status: 'cancelled' }, after: null },
      { actor: 'bob', action: 'cancel', before: { status: 'pending' }, after: { status: 'cancelled' } },
    ])
    const second = await ask(`GET /audit?cursor=${encodeURIComponent(first.json.next)}`, as('bob'))
    expect(second.json).toMatchObject({ entries: [{ actor: 'ann', action: 'retry' }], next: null })
    expect((await ask('GET /audit?actor=bob', as('ann@acme'))).json.entries).toHaveLength(1)
    expect((await ask('GET /audit', as('eve@other'))).json.entries).toEqual([])
    expect((await ask('GET /audit?tenant=acme', as('eve@other'))).json.entries).toEqual([])
    expect((await ask('GET /audit?cursor=soon', as('bob'))).status).toBe(400)
  })

  it('is kept of forks and of schedules as well', async () => {
    const { ask, as, failed, schedules } = named()
    const id = await failed('acme')
    const { json: forked } = await ask(`POST /runs/${id}/fork`, { ...as('ann@acme'), body: {} })
    await schedules.create('nightly', { job: 'job', payload: {}, every: 60_000, tenant: 'acme' })
    const body = { name: 'nightly', tenant: 'acme' }
    await ask('POST /schedules/pause', { ...as('bob'), body: { ...body, because: 'a feast' } })
    await ask('POST /schedules/resume', { ...as('bob'), body })
    const { json: started } = await ask('POST /schedules/run', { ...as('ann@acme'), body })
    await ask('POST /schedules/run', { ...as(''), body })
    const { json } = await ask('GET /audit', as('bob'))
    const of = { targetKind: 'schedule', target: 'nightly', tenant: 'acme' }
    expect(json.entries).toMatchObject([
      { ...of, actor: 'ann', action: 'schedules.runNow', before: null, after: { runs: [started.id] } },
      { ...of, actor: 'bob', action: 'schedules.resume', before: { pausedBecause: 'a feast' } },
      { ...of, actor: 'bob', action: 'schedules.pause', before: { pausedBecause: null } },
      { actor: 'ann', action: 'fork', target: id, before: { status: 'failed' }, after: { run: forked.id } },
    ])
  })

  it('leaves nothing where nobody has a name, and where the storage cannot keep it', async () => {
    const { ask, as, failed } = named()
    const id = await failed()
    await ask(`POST /runs/${id}/retry`, as(''))
    expect((await ask('GET /audit', as('bob'))).json.entries).toEqual([])
    const { audit: _none, ...storage } = createMemoryStorage()
    const without = named({ storage })
    const other = await without.failed()
    expect((await without.ask(`POST /runs/${other}/retry`, as('bob'))).status).toBe(200)
    expect((await without.ask('GET /audit', as('bob'))).status).toBe(501)
  })

  it('is in the name of who began it when it is done to many runs', async () => {
    const { ask, as, failed, durably } = named()
    const ids = [await failed(), await failed()]
    await ask('POST /bulk', { ...as('ann'), body: { action: 'delete', filter: { status: ['failed'] } } })
    await durably.runUntilIdle()
    const entries = await durably.getAudit()
    expect(entries.map(({ actor, action, target }) => [actor, action, target]).sort()).toEqual(
      ids.map((id) => ['ann', 'deleteRun', id]).sort(),
    )
  })

  it('is read by the client, which says of nobody who he is', async () => {
    const { handler, failed } = named()
    const id = await failed()
    const client = createDurablyClient({
      url: 'http://app.test',
      headers: { 'x-user': 'ann' },
      fetch: (request) => handler(request),
    })
    await client.retry(id)
    await client.signal(id, 'go', 1)
    await client.cancel(id)
    await expect(client.retry(id, { as: { actor: 'root' } })).rejects.toThrow(InvalidOptionError)
    await expect(client.deleteRun(id, { as: { actor: 'root' } })).rejects.toThrow(InvalidOptionError)
    const [last] = await client.getAudit({ limit: 1 })
    expect(last).toMatchObject({ actor: 'ann', action: 'cancel' })
    expect(await client.getAudit({ cursor: last, target: id })).toMatchObject([
      { action: 'signal' },
      { action: 'retry' },
    ])
  })
})

describe('logs in an archive', () => {
  it('that cannot be had are Gone, with the reason', async () => {
    const archive = {
      read: () => {
        throw new LogArchiveError('missing', 'The archive has no "x" any more.')
      },
    } as unknown as LogArchive
    const { ask, as, failed, durably } = named()
    durably.use({ name: 'archive', logArchive: archive })
    const id = await failed()
    const { version } = (await durably.storage.getRun(id)) ?? { version: 0 }
    await durably.storage.archiving?.announce('x')
    expect(await durably.storage.archiving?.refer({ runId: id, version, name: 'x' })).toBe(true)
    const { status, json } = await ask(`GET /runs/${id}/logs`, as('ann'))
    expect([status, json.code, json.detail]).toEqual([410, 'LOGS_UNAVAILABLE', 'The archive has no "x" any more.'])
    expect((await ask(`GET /runs/${id}`, as('ann'))).json.status).toBe('failed')
  })
})
