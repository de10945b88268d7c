import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { createDatabase, type PostgresDatabase } from '../../../../test/postgres'
import { createKyselyStorage, type KyselyStorage } from '../../src'
import { postgres } from '../../src/drivers/postgres'
import { claim, COMPLETE, newCommit, newRun } from '../builders'
import { Watch } from './orders'

let database: PostgresDatabase
let storage: KyselyStorage
let watch: Watch

beforeAll(async () => {
  database = await createDatabase()
  watch = await Watch.open(database.url)
  storage = createKyselyStorage({ dialect: postgres({ connectionString: database.url, listen: false }) })
  await storage.migrate()
})

beforeEach(() => watch.query('truncate durably_runs'))

afterAll(async () => {
  await storage.close()
  await watch.end()
  await database.drop()
})

const ofKey = (concurrencyKey: string, concurrencyLimit: number, count: number) =>
  Array.from({ length: count }, () => newRun({ concurrencyKey, concurrencyLimit }))

const keysOf = async (limit: number) => (await claim(storage, limit)).map((run) => run.concurrencyKey)

it('claims what comes after runs that the first of their key holds back', async () => {
  await storage.enqueue([...ofKey('a', 1, 4), newRun(), ...ofKey('b', 2, 3), newRun()])
  expect(await keysOf(5)).toEqual(['a', null, 'b', 'b', null])
  expect(await keysOf(5)).toEqual([])
})

it('claims as much behind a hundred runs of one key', async () => {
  await storage.enqueue([...ofKey('a', 2, 100), ...ofKey('b', 1, 2), newRun()])
  expect(await keysOf(4)).toEqual(['a', 'a', 'b', null])
})

it('finds what is free behind many keys that are busy, from whatever place it goes on', async () => {
  const keys = Array.from({ length: 150 }, (_, n) => `key ${String(n).padStart(3, '0')}`)
  await storage.enqueue(keys.flatMap((key) => ofKey(key, 1, 2)))
  const claimed: (string | null)[] = []
  for (let left = keys.length - 1; left > 0; left -= 1) claimed.push(...(await keysOf(1)))
  expect(new Set(claimed).size).toBe(149)
  const free = keys.filter((key) => !claimed.includes(key))
  expect(await keysOf(1)).toEqual(free)
  expect(await keysOf(10)).toEqual([])
  await storage.enqueue(ofKey('', 1, 1))
  expect(await keysOf(10)).toEqual([''])
})

it('comes to every key behind a busy one, also when that is free now and then and the first keys are refilled', async () => {
  const key = (n: number) => `key ${String(n).padStart(3, '0')}`
  const run = (concurrencyKey: string, priority: number) => newRun({ concurrencyKey, concurrencyLimit: 1, priority })
  await storage.enqueue(Array.from({ length: 60 }, () => run('hot', 10)))
  await storage.enqueue([...Array.from({ length: 200 }, (_, n) => run(key(n), 0)), run('zzz', 5)])
  const begun: (string | null)[] = []
  for (let round = 0; round < 8; round++) {
    const [hot] = await claim(storage)
    const [other] = await claim(storage)
    begun.push(other?.concurrencyKey ?? null)
    const ended = [hot, other].flatMap((each) => (each === undefined ? [] : [newCommit(each, { outcome: COMPLETE })]))
    await storage.commit(ended)
    await storage.enqueue([run(other?.concurrencyKey ?? '', 0)])
  }
  expect(begun).toContain('zzz')
})
