import { expect, it } from 'vitest'
import { z } from 'zod'
import { createDurablyHandler, type Granted } from '../src'
import { createDurablyClient } from '../src/client'
import { openApi } from './api'
import { described } from './described'

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

it('lists those of a job, with labels, paused or ended', async () => {
  const { schedules, client } = await open()
  const labels = { team: 'red', 'a b': '%' }
  await schedules.create('once', { job: 'report', payload: { n: 1 }, at: new Date('2990-01-01'), labels })
  await schedules.pause('once')
  const listed = async (query: Parameters<typeof client.schedules>[0]) =>
    (await client.schedules(query)).schedules.map(({ name }) => name)
  expect(await listed({ labels })).toEqual(['once'])
  expect(await listed({ labels: { team: 'blue' } })).toEqual([])
  expect(await listed({ paused: true })).toEqual(['once'])
  expect(await listed({ paused: false, tenant: '' })).toEqual(['nightly'])
  expect([await listed({ ended: true }), (await listed({ ended: false, jobName: 'report' })).length]).toEqual([[], 5])
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

it('sends messages out anew, of everybody or of one tenant', async () => {
  const { durably, inbox, client, ask } = await open()
  durably.defineJob({ name: 'bill', input: z.unknown(), on: 'paid' }, () => {})
  for (const tenant of ['acme', 'other']) await durably.publish({ type: 'paid', payload: { n: 1 }, tenant })
  await inbox.drain()
  expect(await client.replayMessages({ type: 'paid', tenant: 'acme' })).toBe(1)
  expect(await client.replayMessages({ type: 'shipped' })).toBe(0)
  expect(await client.replayMessages({ unwanted: true, from: '2020-01-01', before: '2999-01-01' })).toBe(0)
  await inbox.drain()
  const bills = await durably.getRuns({ jobName: 'bill' })
  expect(bills.map(({ tenant }) => tenant).sort()).toEqual(['acme', 'acme', 'other'])
  for (const body of [{}, { tenant: 'acme' }]) {
    expect((await ask('POST /inbox/replay', { body })).json.detail).toContain('Say which messages')
  }
})

it('sends out no message of another tenant, and none for who may not', async () => {
  const paid = { type: 'paid', payload: { n: 1 }, tenant: 'acme' }
  const stranger = await open({ tenant: 'other', allow: 'all' })
  await stranger.durably.publish(paid)
  await stranger.inbox.drain()
  expect((await stranger.ask('POST /inbox/replay', { body: { type: 'paid' } })).json).toEqual({ replayed: 0 })
  expect((await stranger.ask('POST /inbox/replay', { body: { type: 'paid', tenant: 'acme' } })).status).toBe(404)
  expect(await stranger.inbox.counts()).toMatchObject({ waiting: 0, processed: 1 })
  const reader = await open({ tenant: 'acme', allow: ['read', 'trigger', 'schedule'] })
  expect((await reader.ask('POST /inbox/replay', { body: { type: 'paid' } })).status).toBe(403)
})

it('says that they are not served where the handler was given none', async () => {
  const { durably, ask } = await open()
  const client = createDurablyClient({
    url: 'http://app.test',
    fetch: described(createDurablyHandler(durably, { allowAnonymous: true })),
  })
  await expect(client.schedules()).rejects.toMatchObject({ code: 'NOT_SERVED', status: 501 })
  await expect(client.messages()).rejects.toMatchObject({ code: 'NOT_SERVED' })
  await expect(client.workers()).rejects.toMatchObject({ code: 'NOT_SERVED' })
  expect(await client.me()).toMatchObject({ schedules: false, inbox: false, workers: false })
  expect((await ask('GET /me')).json).toMatchObject({ schedules: true, inbox: true, workers: true })
})
