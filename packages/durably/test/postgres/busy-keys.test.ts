import { afterEach, expect, it } from 'vitest'
import { z } from 'zod'
import { createDurably, createKyselyStorage } from '../../src/index'
import { postgres } from '../../src/postgres'
import { newPlace, WITHOUT_POLLING } from './kit'

/** More than a claim goes through. */
const KEYS = 600

const endings: (() => Promise<void>)[] = []

afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end()
})

/** Two instances on one storage, with a run for each of many keys that are busy elsewhere. */
async function openBehindBusyKeys() {
  const place = await newPlace()
  const storage = createKyselyStorage({ dialect: postgres({ connectionString: place.url }) })
  endings.push(() => storage.close())
  const open = () => {
    const durably = createDurably({ storage, ...WITHOUT_POLLING })
    endings.push(() => durably.stop())
    const job = durably.defineJob({ name: 'job', input: z.object({}) }, () => 'done')
    return { durably, job }
  }
  const [one, other] = [open(), open()]
  const triggerFor = (concurrencyKey: string) => one.job.trigger({}, { concurrencyKey })
  const keys = Array.from({ length: KEYS }, (_, n) => `key ${n}`)
  await one.job.batchTrigger(keys.map((concurrencyKey) => ({ payload: {}, options: { concurrencyKey } })))
  await place.query(`insert into durably_runs
      (id, job_name, payload, created_at, updated_at, status, concurrency_key, concurrency_slot, lease_until, started_at)
    select 'busy ' || id, job_name, payload, now(), now(), 'running', concurrency_key, 0, now() + interval '1 day', now()
    from durably_runs`)
  return { one: one.durably, other: other.durably, triggerFor }
}

it('runs what is due behind more busy keys than a claim goes through, and comes to rest', async () => {
  const { one, other, triggerFor } = await openBehindBusyKeys()
  await triggerFor('zzz')
  expect(await one.runUntilIdle()).toMatchObject({ ran: 1 })
  const both = await Promise.all([one.runUntilIdle(), other.runUntilIdle()])
  expect(both.map(({ ran }) => ran)).toEqual([0, 0])
})

it('finds it without a poll, beside another worker', async () => {
  const { one, other, triggerFor } = await openBehindBusyKeys()
  one.start()
  other.start()
  const { id } = await triggerFor('zzz')
  await expect.poll(async () => (await one.getRun(id))?.status).toBe('completed')
})
