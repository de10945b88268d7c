import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { openApi, type Api, type ApiOptions } from './api'

const NOBODY = '01J00000000000000000000000'

function openWithJobs(options: ApiOptions = {}): Api {
  const api = openApi(options)
  const input = z.object({ a: z.number(), b: z.number() })
  api.durably.defineJob({ name: 'add', input }, async (ctx, { a, b }) => {
    ctx.log.info('adding', { a, b })
    return ctx.run('sum', () => a + b)
  })
  api.durably.defineJob({ name: 'fail', input: z.unknown() }, (ctx) =>
    ctx.run('break', () => {
      throw new Error('it broke')
    }),
  )
  api.durably.defineJob({ name: 'ask', input: z.unknown() }, (ctx) => ctx.waitFor('answer', { schema: z.string() }))
  return api
}

async function triggered(api: Api, jobName = 'add', payload: unknown = { a: 1, b: 2 }): Promise<string> {
  const { json } = await api.ask('POST /runs', { body: { jobName, payload } })
  return json.id
}

async function ran(api: Api, jobName?: string): Promise<string> {
  const id = await triggered(api, jobName)
  await api.durably.runUntilIdle()
  return id
}

describe('triggering', () => {
  it('stores a run and answers with it', async () => {
    const api = openWithJobs()
    const options = { labels: { team: 'red' }, priority: 3, idempotencyKey: 'key' }
    const body = { jobName: 'add', payload: { a: 1, b: 2 }, options }
    const { status, json } = await api.ask('POST /runs', { body })
    expect(status).toBe(201)
    expect(json).toMatchObject({ status: 'pending', jobName: 'add', payload: { a: 1, b: 2 }, deduplicated: false })
    expect(await api.durably.getRun(json.id)).toMatchObject({ labels: { team: 'red' }, priority: 3 })
    expect((await api.ask('POST /runs', { body })).json).toMatchObject({ id: json.id, deduplicated: true })
  })

  it('says what the schema of a job refuses, and stores nothing', async () => {
    const api = openWithJobs()
    const { status, json } = await api.ask('POST /runs', { body: { jobName: 'add', payload: { a: 1, b: 'two' } } })
    expect(status).toBe(422)
    expect(json).toMatchObject({ code: 'VALIDATION', issues: [{ path: 'b' }] })
    expect(await api.durably.getRuns()).toEqual([])
  })

  it('refuses a key that another payload has, when it is asked to', async () => {
    const api = openWithJobs()
    const options = { idempotencyKey: 'key', onConflict: 'reject' }
    const first = await api.ask('POST /runs', { body: { jobName: 'add', payload: { a: 1, b: 1 }, options } })
    const second = await api.ask('POST /runs', { body: { jobName: 'add', payload: { a: 2, b: 2 }, options } })
    expect(second.status).toBe(409)
    expect(second.json).toMatchObject({ code: 'CONFLICT', runId: first.json.id, runStatus: 'pending' })
  })
})

describe('reading', () => {
  it('has the run, its steps, logs and events', async () => {
    const api = openWithJobs()
    const id = await ran(api)
    expect((await api.ask(`GET /runs/${id}`)).json).toMatchObject({ id, status: 'completed', output: 3 })
    expect((await api.ask(`GET /runs/${id}/steps`)).json.steps).toMatchObject([{ name: 'sum', output: 3 }])
    expect((await api.ask(`GET /runs/${id}/logs`)).json.logs).toMatchObject([
      { message: 'adding', data: { a: 1, b: 2 } },
    ])
    const { events } = (await api.ask(`GET /runs/${id}/history?after=1`)).json
    expect(events[0]).toMatchObject({ type: 'run:start', seq: 2, payload: { a: 1, b: 2 } })
    expect(events.at(-1)).toMatchObject({ type: 'run:complete', output: 3 })
    expect((await api.ask(`GET /runs/${id}/history?after=1&limit=1`)).json.events).toEqual(events.slice(0, 1))
    expect((await api.ask(`GET /runs/${id}/explanation`)).json.explanation).toContain('completed at')
  })

  it('answers HEAD without a body, and OPTIONS with what is possible', async () => {
    const api = openWithJobs()
    const id = await ran(api)
    expect(await api.ask(`HEAD /runs/${id}`)).toMatchObject({ status: 200, json: '' })
    const options = await api.ask(`OPTIONS /runs/${id}`)
    expect(options.status).toBe(204)
    expect(options.headers.get('allow')).toBe('GET, HEAD, DELETE')
  })

  it('lists runs page by page, also when the last run of a page is gone', async () => {
    const api = openWithJobs()
    const ids: string[] = []
    for (let n = 0; n < 5; n++) ids.unshift(await ran(api))
    const first = (await api.ask('GET /runs?limit=2')).json
    expect(first.runs.map(({ id }: { id: string }) => id)).toEqual(ids.slice(0, 2))
    await api.ask(`DELETE /runs/${ids[1]}`)
    const second = (await api.ask(`GET /runs?limit=2&cursor=${encodeURIComponent(first.next)}`)).json
    expect(second.runs.map(({ id }: { id: string }) => id)).toEqual(ids.slice(2, 4))
    const last = (await api.ask(`GET /runs?limit=2&cursor=${encodeURIComponent(second.next)}`)).json
    expect(last).toMatchObject({ runs: [{ id: ids[4] }], next: null })
    expect((await api.ask(`GET /runs?limit=2&cursor=${ids[3]}`)).json.runs).toHaveLength(1)
  })

  it('lists by status, job, tenant and labels', async () => {
    const api = openWithJobs()
    const red = await api.durably.trigger('add', { a: 1, b: 1 }, { labels: { team: 'red', 'a b': 'ü' }, tenant: 't' })
    const failed = await ran(api, 'fail')
    const listed = async (query: string) =>
      (await api.ask(`GET /runs?${query}`)).json.runs.map(({ id }: { id: string }) => id)
    expect(await listed('status=failed')).toEqual([failed])
    expect(await listed('status=failed&status=completed')).toEqual([failed, red.id])
    expect(await listed('jobName=add')).toEqual([red.id])
    expect(await listed('tenant=t')).toEqual([red.id])
    expect(await listed(`labels[team]=red&${new URLSearchParams({ 'labels[a b]': 'ü' })}`)).toEqual([red.id])
    expect(await listed('labels[team]=blue')).toEqual([])
    expect(await listed('waitsForRetry=true')).toEqual([])
    expect((await api.ask('GET /stats?jobName=add')).json).toMatchObject({
      ...{ completed: 1, failed: 0, upTo: 1000 },
    })
    expect((await api.ask('GET /stats?tenant=t')).json).toMatchObject({ upTo: 10_000 })
    expect((await api.ask('GET /stats?upTo=5')).json).toMatchObject({ upTo: 5 })
  })

  it('refuses conditions that nobody knows, and gives no longer pages than it may', async () => {
    const api = openWithJobs({ maxPageSize: 2 })
    for (const query of ['state=failed', 'status=done', 'limit=0', 'limit=x', 'labels=a', 'jobName=', 'jobName[a]=b']) {
      expect(await api.ask(`GET /runs?${query}`), query).toMatchObject({
        status: 400,
        json: { code: 'INVALID_REQUEST' },
      })
    }
    for (const name of ['__proto__', 'labels[__proto__]', 'labels[team]=red&labels[__proto__]']) {
      const refused = { status: 400, json: { code: 'INVALID_REQUEST' } }
      expect(await api.ask(`GET /runs?${name}=x`), name).toMatchObject(refused)
      expect(await api.ask(`GET /schedules?${name}=x`), name).toMatchObject(refused)
    }
    for (let n = 0; n < 3; n++) await triggered(api)
    for (const query of ['', '?limit=100']) expect((await api.ask(`GET /runs${query}`)).json.runs).toHaveLength(2)
    expect(await api.ask('GET /runs?cursor=x')).toMatchObject({ status: 400, json: { code: 'INVALID_OPTION' } })
    expect(await api.ask('GET /runs?cursor=x~y')).toMatchObject({ status: 400, json: { code: 'INVALID_OPTION' } })
  })
})

describe('lists in requests', () => {
  const many = (count: number, toPart: (n: number) => string) => Array.from({ length: count }, (_, n) => toPart(n))
  const LONG: readonly (readonly [path: string, most: number, toPart: (n: number) => string])[] = [
    ['/runs', 8, () => 'status=failed'],
    ['/stats', 8, () => 'status=failed'],
    ['/runs', 100, (n) => `jobName=job${n}`],
    ['/waits', 100, (n) => `jobName=job${n}`],
    ['/runs', 100, (n) => `labels[l${n}]=x`],
    ['/schedules', 100, (n) => `labels[l${n}]=x`],
    ['/inbox', 100, (n) => `type=t${n}`],
  ]

  it('have an end', async () => {
    const api = openWithJobs()
    for (const [path, most, toPart] of LONG) {
      const statusOf = async (count: number) => (await api.ask(`GET ${path}?${many(count, toPart).join('&')}`)).status
      expect([await statusOf(most), await statusOf(most + 1)], `${path} ${toPart(0)}`).toEqual([200, 400])
    }
    const filters = [
      { status: many(501, () => 'failed') },
      { jobName: many(101, String) },
      { labels: Object.fromEntries(many(101, String).map((name) => [name, 'x'])) },
    ]
    for (const filter of filters)
      expect((await api.ask('POST /bulk', { body: { action: 'cancel', filter } })).status).toBe(400)
  })
})

describe('changing', () => {
  it('cancels, retries and deletes, and says what is in the way', async () => {
    const api = openWithJobs()
    const id = await triggered(api)
    expect(await api.ask(`POST /runs/${id}/retry`)).toMatchObject({
      status: 409,
      json: { code: 'CONFLICT', runId: id },
    })
    expect(await api.ask(`DELETE /runs/${id}`)).toMatchObject({ status: 409, json: { runStatus: 'pending' } })
    expect((await api.ask(`POST /runs/${id}/cancel`)).json).toMatchObject({ status: 'cancelled' })
    expect((await api.ask(`POST /runs/${id}/retry`, { body: {} })).json).toMatchObject({
      status: 'pending',
      attempt: 2,
    })
    await api.durably.runUntilIdle()
    expect(await api.ask(`DELETE /runs/${id}`)).toMatchObject({ status: 204, json: '' })
    expect(await api.ask(`GET /runs/${id}`)).toMatchObject({ status: 404, json: { code: 'NOT_FOUND' } })
  })

  it('signals a run that waits for somebody', async () => {
    const api = openWithJobs()
    const id = await ran(api, 'ask')
    const body = { name: 'answer', payload: 'yes', dedupeKey: 'once' }
    expect((await api.ask(`POST /runs/${id}/signal`, { body })).json).toEqual({ deduplicated: false })
    expect((await api.ask(`POST /runs/${id}/signal`, { body })).json).toEqual({ deduplicated: true })
    await api.durably.runUntilIdle()
    expect(await api.durably.getRun(id)).toMatchObject({ status: 'completed', output: 'yes' })
    expect((await api.ask(`POST /runs/${id}/signal`, { body: { name: 'answer' } })).status).toBe(409)
  })

  it('says of commands for parked runs that the run is not parked', async () => {
    const api = openWithJobs()
    const id = await triggered(api)
    for (const command of ['unpark', 'fail']) expect((await api.ask(`POST /runs/${id}/${command}`)).status).toBe(409)
  })
})

describe('what is not there', () => {
  it('is 404 for every route about a run', async () => {
    const api = openWithJobs()
    for (const id of [NOBODY, 'x', '%00', '%E0%A4%A', 'a%2Fb', '__proto__']) {
      for (const line of ['GET', 'DELETE'])
        expect((await api.ask(`${line} /runs/${id}`)).status, `${line} ${id}`).toBe(404)
      expect((await api.ask(`GET /runs/${id}/events`)).status).toBe(404)
      expect((await api.ask(`POST /runs/${id}/cancel`)).status).toBe(404)
    }
  })

  it('is said of addresses and methods', async () => {
    const api = openWithJobs({ basePath: '/api' })
    for (const path of ['/', '/runs', '/api', '/apis/runs', '/api/runs/a/b', '/api/runs/a/cancel/', '/api/constructor'])
      expect(await api.ask(`GET ${path}`), path).toMatchObject({ status: 404, json: { code: 'NO_SUCH_ROUTE' } })
    const { status, headers, json } = await api.ask('PUT /api/runs')
    expect({ status, code: json.code, allow: headers.get('allow') }).toEqual({
      status: 405,
      code: 'METHOD_NOT_ALLOWED',
      allow: 'POST, GET, HEAD',
    })
    expect((await api.ask('GET /api/runs')).status).toBe(200)
  })
})

describe('trouble', () => {
  it('of the server is told to the server alone', async () => {
    const api = openWithJobs({
      redact: () => {
        throw new Error('the password is 1234')
      },
    })
    const heard: unknown[] = []
    api.durably.onError((error) => heard.push(error))
    const { status, json } = await api.ask('POST /runs', { body: { jobName: 'add', payload: { a: 1, b: 2 } } })
    expect(status).toBe(500)
    expect(JSON.stringify(json)).not.toContain('1234')
    expect(heard).toEqual([new Error('the password is 1234')])
  })

  it('of the database is a reason to try again, without its details', async () => {
    const api = openWithJobs()
    await api.durably.close()
    const { status, headers, json } = await api.ask('POST /runs', { body: { jobName: 'add', payload: { a: 1, b: 2 } } })
    expect({ status, retryAfter: headers.get('retry-after'), code: json.code }).toEqual({
      status: 503,
      retryAfter: '1',
      code: 'CLOSED',
    })
  })
})
