import { expect, it } from 'vitest'
import { z } from 'zod'
import { createDurablyHandler, type Granted } from '../src'
import { createDurablyClient } from '../src/client'
import { openApi } from './api'

const YEARLY = { cron: '0 3 1 1 *', zone: 'UTC' } as const

async function open(granted?: Granted, redact?: (value: unknown) => unknown) {
  const api = openApi({
    ...(granted !== undefined && { authorize: () => granted }),
    ...(redact !== undefined && { redact }),
  })
  const job = api.durably.defineJob({ name: 'report', input: z.object({ n: z.number() }) }, () => {})
  const names = ['daily~/ %', 'nightly', 'weekly']
  for (const name of names) await api.schedules.create(name, { job, payload: { n: 1 }, ...YEARLY, tenant: 'acme' })
  await api.schedules.create('nightly', { job, payload: { n: 2 }, every: 3_600_000 })
  const client = createDurablyClient({ url: 'http://app.test', fetch: api.handler })
  return { ...api, client, names }
}

it('lists schedules page by page, of everybody or of one tenant', async () => {
  const { ask, client, names } = await open()
  const { json } = await ask('GET /schedules')
  expect(json.next).toBeNull()
  expect(json.schedules).toMatchObject([
    { name: 'nightly', tenant: '', timing: { kind: 'every', ms: 3_600_000 }, payload: { n: 2 }, pausedBecause: null },
    ...names.map((name) => ({ name, tenant: 'acme', jobName: 'report', timing: { kind: 'cron', zone: 'UTC' } })),
  ])
  const found: string[] = []
  for (let cursor: string | undefined; ; ) {
    const { schedules, next } = await client.schedules({ tenant: 'acme', limit: 1, cursor })
    found.push(...schedules.map(({ name }) => name))
    if (next === null) break
    cursor = next
  }
  expect(found).toEqual(names)
  expect((await ask('GET /schedules?cursor=x')).status).toBe(400)
})

it('pauses, resumes and runs them', async () => {
  const { durably, schedules, client } = await open()
  const scope = { tenant: 'acme' }
  expect(await client.pauseSchedule('weekly', { ...scope, because: 'vacation' })).toMatchObject({
    pausedBecause: 'vacation',
  })
  expect(await schedules.get('weekly', scope)).toMatchObject({ pausedBecause: 'vacation' })
  expect(await client.resumeSchedule('weekly', scope)).toMatchObject({ pausedBecause: null })
  const { id } = await client.runSchedule('weekly', scope)
  expect(await durably.getRun(id)).toMatchObject({ jobName: 'report', tenant: 'acme', payload: { n: 1 } })
  await expect(client.runSchedule('weekly')).rejects.toMatchObject({ code: 'NOT_FOUND' })
})

it('shows and changes nothing of another tenant', async () => {
  const { ask } = await open({ tenant: 'other', allow: 'all' })
  expect((await ask('GET /schedules')).json.schedules).toEqual([])
  expect((await ask('GET /schedules?tenant=acme')).json.schedules).toEqual([])
  for (const path of ['pause', 'resume', 'run']) {
    expect((await ask(`POST /schedules/${path}`, { body: { name: 'weekly', tenant: 'acme' } })).status).toBe(404)
    expect((await ask(`POST /schedules/${path}`, { body: { name: 'weekly' } })).status).toBe(404)
  }
})

it('redacts what goes into their runs', async () => {
  const { ask } = await open(undefined, () => 'hidden')
  const { json } = await ask('GET /schedules?tenant=acme&limit=1')
  expect(json.schedules).toMatchObject([{ payload: 'hidden', jobName: 'report' }])
})

it('lists and counts messages, of everybody or of one tenant', async () => {
  const { durably, ask, client } = await open()
  for (const tenant of ['acme', 'acme', 'other']) await durably.publish({ type: 'paid', payload: { n: 1 }, tenant })
  const { messages, next } = await client.messages({ tenant: 'acme', limit: 1 })
  expect(messages).toMatchObject([{ type: 'paid', payload: { n: 1 }, tenant: 'acme', processedAt: null, wanted: 0 }])
  expect((await client.messages({ tenant: 'acme', cursor: next ?? '' })).messages).toHaveLength(1)
  expect(await client.messageCounts({ tenant: 'acme' })).toEqual({ waiting: 2, processed: 0, unwanted: 0 })
  expect((await ask('GET /inbox?type=shipped')).json.messages).toEqual([])
  expect((await ask('GET /inbox/stats')).json).toMatchObject({ waiting: 3 })
})

it('says that they are not served where the handler was given none', async () => {
  const { durably, ask } = await open()
  const client = createDurablyClient({
    url: 'http://app.test',
    fetch: createDurablyHandler(durably, { allowAnonymous: true }),
  })
  await expect(client.schedules()).rejects.toMatchObject({ code: 'NOT_SERVED', status: 501 })
  await expect(client.messages()).rejects.toMatchObject({ code: 'NOT_SERVED' })
  expect(await client.me()).toMatchObject({ schedules: false, inbox: false })
  expect((await ask('GET /me')).json).toMatchObject({ schedules: true, inbox: true })
})
