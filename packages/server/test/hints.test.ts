import { describe, expect, it } from 'vitest'
import { openApi, toRequest, type ApiOptions } from './api'
import { Follower } from './sse'

function openForTenants(options: ApiOptions = {}) {
  const api = openApi({
    authorize: ({ request }) => ({ tenant: request.headers.get('authorization'), allow: 'read' }),
    ...options,
  })
  const watch = async (tenant?: string) => {
    const headers = tenant === undefined ? {} : { authorization: tenant }
    return new Follower((await api.handler(toRequest('GET /events', { headers }))).body)
  }
  return { ...api, watch }
}

const dataOf = ({ messages }: Follower) => messages.map(({ data }) => data)

describe('hints', () => {
  it('tell of runs of the tenant and no others what became of them', async () => {
    const { durably, watch } = openForTenants()
    const [acme, all] = [await watch('acme'), await watch()]
    const other = await durably.trigger('job', 1, { tenant: 'other' })
    const own = await durably.trigger('job', 1, { tenant: 'acme' })
    await acme.until((messages) => messages.length > 0)
    expect(dataOf(acme)).toEqual([{ id: own.id, status: 'pending', version: own.version }])
    await all.until((messages) => messages.length > 1)
    expect(dataOf(all)).toEqual(
      expect.arrayContaining([...dataOf(acme), { id: other.id, status: 'pending', version: 1 }]),
    )
    await durably.cancel(own.id)
    await acme.until((messages) => messages.length > 1)
    expect(dataOf(acme)[1]).toMatchObject({ id: own.id, status: 'cancelled' })
  })

  it('tell of a run that is gone those who see everything', async () => {
    const { durably, watch } = openForTenants()
    const { id } = await durably.trigger('job', 1)
    await durably.cancel(id)
    const all = await watch()
    await durably.deleteRun(id)
    await all.until((messages) => messages.length > 0)
    expect(dataOf(all)).toEqual([{ id, status: null, version: null }])
  })

  it('end when who reads belongs to another tenant, and are for the new one when they begin anew', async () => {
    let tenant = 'acme'
    const often = { keepAliveInterval: 20, recheckInterval: 20 }
    const { durably, watch } = openForTenants({ ...often, authorize: () => ({ tenant, allow: 'read' }) })
    const reader = await watch()
    await durably.trigger('job', 1, { tenant: 'acme' })
    await reader.until((messages) => messages.length > 0)
    tenant = 'other'
    await reader.toEnd()
    const [again, own] = [await watch(), await durably.trigger('job', 1, { tenant: 'other' })]
    await durably.trigger('job', 1, { tenant: 'acme' })
    await again.until((messages) => messages.length > 0)
    expect(dataOf(again)).toEqual([{ id: own.id, status: 'pending', version: 1 }])
  })

  it('are one query for all readers, and say to read anew when there are too many', async () => {
    const { durably, watch } = openForTenants()
    let queries = 0
    const { getRuns } = durably.storage
    durably.storage.getRuns = (query) => {
      queries += 1
      return getRuns(query)
    }
    const readers = await Promise.all(Array.from({ length: 20 }, () => watch()))
    await durably.trigger('job', 1)
    for (const reader of readers) await reader.until((messages) => messages.length > 0)
    expect(queries).toBe(1)
    await Promise.all(Array.from({ length: 501 }, () => durably.trigger('job', 1)))
    for (const reader of readers) await reader.until((messages) => messages.some(({ event }) => event === 'reload'))
  })
})
