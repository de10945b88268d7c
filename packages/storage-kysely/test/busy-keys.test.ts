import Database from 'better-sqlite3'
import { afterEach, expect, it } from 'vitest'
import { reportSuite } from '../../../test/report'
import { createKyselyStorage, type KyselyStorage } from '../src'
import { betterSqlite3 } from '../src/drivers/better-sqlite3'
import { claim, newRun } from './builders'
import { counting } from './counting'
import { bestMs } from './searches'

let storage: KyselyStorage | undefined

afterEach(async () => {
  await storage?.close()
  storage = undefined
})

const COLUMNS =
  'id, job_name, payload, status, concurrency_key, concurrency_slot, lease_until, available_at, created_at, updated_at'

/** Each key has a run that runs, and one that waits for it. */
async function withBusyKeys(keys: number) {
  const database = new Database(':memory:')
  const { dialect, messages } = counting(betterSqlite3({ database }))
  storage = createKyselyStorage({ dialect })
  await storage.migrate()
  const fill = (status: string, slot: string, lease: string) =>
    database.exec(`with recursive n (i) as (select 1 union all select i + 1 from n where i < ${keys})
      insert into durably_runs (${COLUMNS}) select '${status}' || i, 'job', '{}', '${status}', 'key ' || printf('%06d', i), ${slot},
        ${lease}, '2020-01-01T00:00:00.000Z', '2020-01-01T00:00:00.000Z', '2020-01-01T00:00:00.000Z' from n`)
  fill('running', '0', `'2999-01-01T00:00:00.000Z'`)
  fill('pending', 'null', 'null')
  return { storage, messages }
}

/** How many claims find nothing before one finds this run. */
async function claimsBefore(storage: KyselyStorage, id: string): Promise<number> {
  for (let claims = 0; ; claims++) {
    const [run] = await claim(storage)
    if (run !== undefined) {
      expect(run.id).toBe(id)
      return claims
    }
  }
}

it('looks at no more keys at a time than a claim may take, and comes to each in turn', async () => {
  const { storage, messages } = await withBusyKeys(3000)
  const free = newRun({ concurrencyKey: 'key 002900 is free' })
  await storage.enqueue([free])
  messages.length = 0
  expect(await claim(storage)).toEqual([])
  // A search, and how far it came, four times.
  expect(messages.flat()).toHaveLength(8)
  // 512 keys a claim.
  expect(await claimsBefore(storage, free.id)).toBe(4)
  expect(await claim(storage)).toEqual([])
})

it('looks at all keys at once where they are few', async () => {
  const { storage } = await withBusyKeys(100)
  const free = newRun({ concurrencyKey: 'key 000090 is free' })
  await storage.enqueue([free])
  expect(await claimsBefore(storage, free.id)).toBe(0)
})

it('does not come late to what is behind the place where it is', async () => {
  const { storage } = await withBusyKeys(3000)
  expect(await claim(storage)).toEqual([])
  const [early, late] = [
    newRun({ concurrencyKey: 'key 000001 is free' }),
    newRun({ concurrencyKey: 'key 000700 is free' }),
  ]
  await storage.enqueue([early, late])
  expect(await claimsBefore(storage, late.id)).toBe(0)
  expect(await claimsBefore(storage, early.id)).toBeLessThanOrEqual(6)
})

it('reports what an empty claim takes beside few and many busy keys', async () => {
  const times: Record<string, string> = {}
  for (const keys of [30, 3000]) {
    const { storage } = await withBusyKeys(keys)
    times[`ms beside ${keys} keys`] = (await bestMs(() => claim(storage))).toFixed(2)
    await storage.close()
  }
  storage = undefined
  reportSuite({ suite: 'an empty claim', ...times })
})
