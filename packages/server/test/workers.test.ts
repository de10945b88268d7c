import { createMemoryStorage } from '@coji/durably-core/memory'
import { newRun } from '@coji/durably-core/testing'
import { expect, it } from 'vitest'
import { z } from 'zod'
import type { Granted } from '../src'
import { createDurablyClient } from '../src/client'
import { openApi } from './api'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

function open(granted: Granted = { tenant: null, allow: 'read' }) {
  const api = openApi({ authorize: () => granted })
  return { ...api, client: createDurablyClient({ url: 'http://app.test', fetch: api.handler }) }
}

it('lists who is there, what they hold, and who leads', async () => {
  const { durably, client } = open()
  let begun = () => {}
  const isBegun = new Promise<void>((resolve) => {
    begun = resolve
  })
  durably.defineJob({ name: 'placed', input: z.unknown(), placement: { labels: { zone: 'a' } } }, async (ctx) => {
    begun()
    await ctx.waitFor('never')
  })
  durably.defineJob({ name: 'long', input: z.unknown() }, (ctx) =>
    ctx.run('wait', ({ signal }) => new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))),
  )
  expect(await client.workers()).toEqual({ workers: [], leader: null })
  const { id } = await durably.trigger('long', 1)
  durably.start()
  await expect.poll(async () => (await client.workers()).workers[0]?.running).toBe(1)
  const { workerId } = durably.health()
  const { workers, leader } = await client.workers()
  expect(workers).toMatchObject([
    {
      ...{ workerId, presence: 'active', isAlive: true, capacity: 1, running: 1, assigned: 0 },
      ...{ placedJobs: ['placed'], labels: { zone: 'a' }, codeVersion: 'v1' },
    },
  ])
  expect(leader).toMatchObject({ workerId: expect.stringContaining(workerId), epoch: 1, isOver: false })
  await durably.cancel(id)
  await durably.trigger('placed', 1)
  await isBegun
  await durably.stop()
  expect((await client.workers()).workers).toMatchObject([{ presence: 'detached', isAlive: false, running: 0 }])
})

it('shows them to those who see the runs of all tenants', async () => {
  const { ask, client } = open({ tenant: 'acme', allow: 'all' })
  expect(await client.me()).toMatchObject({ workers: false })
  const { status, json } = await ask('GET /workers')
  expect({ status, code: json.code }).toEqual({ status: 403, code: 'FORBIDDEN' })
})

it('shows of which runs nobody knows whether they go on', async () => {
  const aMinuteAgo = createMemoryStorage({ now: () => Date.now() - MINUTE })
  const { handler, ask } = openApi({ storage: aMinuteAgo })
  const client = createDurablyClient({ url: 'http://app.test', fetch: handler })
  const claimed = async (jobName: string, leaseMs: number) => {
    const run = newRun({ jobName })
    await aMinuteAgo.enqueue([run])
    const by = { workerId: 'w', claimToken: jobName, jobs: [jobName], limit: 1, holdsSuspect: false, events: [] }
    await aMinuteAgo.claim({ ...by, leaseMs })
    return run.id
  }
  const lasting = await claimed('lasting', HOUR)
  const other = await claimed('other', MINUTE / 2)
  expect((await client.getRun(lasting))?.continuationState).toBe('CONFIRMING')
  expect((await client.getRun(other))?.continuationState).toBe('NONE')
  const { json } = await ask('GET /runs?jobName=lasting')
  expect(json).toMatchObject({ runs: [{ id: lasting, continuationState: 'CONFIRMING' }] })
})
