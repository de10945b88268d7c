import type { NewRun } from '@coji/durably-core/storage'
import pg from 'pg'
import { beforeEach, describe, expect, it } from 'vitest'
import { createKyselyStorage } from '../../src'
import { postgres } from '../../src/drivers/postgres'
import { claim, COMPLETE, newCommit, newRun } from '../builders'
import { useOwnStorage } from './own-storage'

const own = useOwnStorage()

const ofKey = (concurrencyKey: string, concurrencyLimit: number, count: number) =>
  Array.from({ length: count }, () => newRun({ concurrencyKey, concurrencyLimit }))

const withPriority = (priority: number, runs: readonly NewRun[]) => runs.map((run) => ({ ...run, priority }))

const numbered = (count: number) => Array.from({ length: count }, (_, n) => `key ${String(n).padStart(4, '0')}`)

const keysOf = async (limit: number) => (await claim(own.storage, limit)).map((run) => run.concurrencyKey)

it('claims what comes after runs that the first of their key holds back', async () => {
  await own.storage.enqueue([...ofKey('a', 1, 4), newRun(), ...ofKey('b', 2, 3), newRun()])
  expect(await keysOf(5)).toEqual(['a', null, 'b', 'b', null])
  expect(await keysOf(5)).toEqual([])
})

it('claims as much behind a hundred runs of one key', async () => {
  await own.storage.enqueue([...ofKey('a', 2, 100), ...ofKey('b', 1, 2), newRun()])
  expect(await keysOf(4)).toEqual(['a', 'a', 'b', null])
})

it('finds what is free behind many keys that are busy, from whatever place it goes on', async () => {
  const keys = numbered(150)
  await own.storage.enqueue(keys.flatMap((key) => ofKey(key, 1, 2)))
  const claimed: (string | null)[] = []
  for (let left = keys.length - 1; left > 0; left -= 1) claimed.push(...(await keysOf(1)))
  expect(new Set(claimed).size).toBe(149)
  const free = keys.filter((key) => !claimed.includes(key))
  expect(await keysOf(1)).toEqual(free)
  expect(await keysOf(10)).toEqual([])
  await own.storage.enqueue(ofKey('', 1, 1))
  expect(await keysOf(10)).toEqual([''])
})

/** Two workers whose runs end at once, while a run is triggered for each that ended: how many began before the wanted one. */
async function begunBefore(wanted: string, most: number): Promise<number> {
  let running = await claim(own.storage, 2)
  for (let begun = 0; begun < most; begun += 1) {
    if (running.some((run) => run.concurrencyKey === wanted)) return begun
    const [ended] = running
    if (ended === undefined) throw new Error('Nothing was claimed.')
    await own.storage.commit([newCommit(ended, { outcome: COMPLETE })])
    await own.storage.enqueue(withPriority(ended.priority, ofKey(ended.concurrencyKey ?? '', 1, 1)))
    running = [...running.slice(1), ...(await claim(own.storage, 1))]
  }
  return most
}

it('lets no lower priority pass a run on a free key, however many wait for a busy key before it', async () => {
  const keys = numbered(400).flatMap((key) => ofKey(key, 1, 1))
  await own.storage.enqueue([
    ...withPriority(10, ofKey('hot', 1, 500)),
    ...keys,
    ...withPriority(5, ofKey('zzz', 1, 1)),
  ])
  expect(await begunBefore('zzz', 20)).toBe(0)
})

it('reaches every key in a round, though the busy key in front becomes free again and again', async () => {
  const keys = numbered(400).flatMap((key) => ofKey(key, 1, 1))
  await own.storage.enqueue([...withPriority(10, [...ofKey('hot', 1, 500), ...ofKey('zzz', 1, 1)]), ...keys])
  expect(await begunBefore('zzz', 100)).toBeLessThan(2 * Math.ceil(402 / 64))
})

const claimAs = (workerId: string) =>
  own.storage.claim({
    ...{ workerId, claimToken: crypto.randomUUID(), jobs: ['job'], limit: 1, leaseMs: 60_000 },
    ...{ holdsSuspect: false, events: [] },
  })

/** Claims again as long as the worker is told to go on; how often. */
async function goOn(workerId: string) {
  const claimed: (string | null)[] = []
  let [claims, isTold] = [0, true]
  const unwatch = own.storage.watch.subscribe((hint) => {
    if (hint.kind === 'runs' && hint.workerId === workerId) isTold = true
  })
  while (isTold && claims < 50) {
    isTold = false
    claims += 1
    for (const run of await claimAs(workerId)) claimed.push(run.concurrencyKey)
  }
  unwatch()
  return { claims, claimed }
}

/** So many keys with one run each that runs and one that waits. */
async function keepBusy(keys: readonly string[]) {
  await own.storage.enqueue(keys.flatMap((key) => ofKey(key, 1, 2)))
  while ((await claim(own.storage, keys.length)).length > 0);
}

it('goes through many busy keys in several claims, and then is told of no more', async () => {
  await keepBusy(numbered(1000))
  const { claims, claimed } = await goOn('alone')
  expect(claimed).toEqual([])
  expect(claims).toBe(Math.ceil(1000 / 64 / 4))
  await own.storage.enqueue(ofKey('zzz', 1, 1))
  expect((await goOn('alone')).claimed).toEqual(['zzz'])
})

it('goes through all keys again for what became due behind it meanwhile', async () => {
  await keepBusy(numbered(1000))
  expect(await claimAs('alone')).toEqual([])
  await own.storage.enqueue(ofKey('a', 1, 1))
  expect((await goOn('alone')).claimed).toEqual(['a'])
})

it('lets no worker move the place of another', async () => {
  await keepBusy(numbered(600))
  await claimAs('own')
  await claimAs('other')
  expect(await goOn('own')).toEqual({ claims: 2, claimed: [] })
  expect(await goOn('other')).toEqual({ claims: 2, claimed: [] })
})

/** The short statement claims where no run that is due has a key, the long one where some has. */
const BESIDES: Readonly<Record<string, () => Promise<unknown>>> = {
  'no run with a key': async () => {},
  'a run whose key is taken': async () => {
    await own.storage.enqueue(ofKey('taken', 1, 2))
    expect(await keysOf(2)).toEqual(['taken'])
  },
}

describe.each(Object.entries(BESIDES))('beside %s', (_name, besides) => {
  beforeEach(besides)

  const idsOf = (runs: readonly { readonly id: string }[]) => runs.map(({ id }) => id).sort()

  it('claims by priority', async () => {
    const [low, high, middle] = [newRun({ priority: 1 }), newRun({ priority: 3 }), newRun({ priority: 2 })]
    await own.storage.enqueue([low, high, middle])
    expect((await claim(own.storage, 2)).map(({ id }) => id)).toEqual([high.id, middle.id])
    expect((await claim(own.storage, 2)).map(({ id }) => id)).toEqual([low.id])
  })

  it('claims one suspect at most, and what comes behind the others', async () => {
    const suspects = [newRun(), newRun(), newRun()]
    const others = [newRun(), newRun()]
    await own.storage.enqueue([...suspects, ...others])
    await own.watch.query(
      `update durably_runs set crash_count = 2 where id in (${suspects.map(({ id }) => `'${id}'`).join()})`,
    )
    const claimed = idsOf(await claim(own.storage, 3))
    expect(claimed.filter((id) => suspects.some((suspect) => suspect.id === id))).toHaveLength(1)
    expect(claimed).toEqual(expect.arrayContaining(idsOf(others)))
  })

  it('claims no run of a job that is paused', async () => {
    await own.storage.enqueue([newRun()])
    await own.storage.limits.pause('job')
    expect(await claim(own.storage, 2)).toEqual([])
    await own.storage.limits.resume('job')
    expect(await claim(own.storage, 2)).toHaveLength(1)
  })

  it('claims each run once, however many claim at once', async () => {
    const runs = Array.from({ length: 40 }, () => newRun())
    await own.storage.enqueue(runs)
    const claimed = await Promise.all(Array.from({ length: 8 }, () => claim(own.storage, 5)))
    const rest = await claim(own.storage, 40)
    expect(idsOf([...claimed.flat(), ...rest])).toEqual(idsOf(runs))
  })
})

it('goes on with runs with keys for some claims after the last one, and without them after those', async () => {
  await own.storage.enqueue(ofKey('free', 1, 1))
  expect(await keysOf(2)).toEqual(['free'])
  for (let n = 0; n < 50; n++) {
    await own.storage.enqueue([newRun()])
    expect(await keysOf(2)).toEqual([null])
  }
  await own.storage.enqueue(ofKey('other', 1, 2))
  expect(await keysOf(2)).toEqual(['other'])
})

it('keeps no plan of a search for the next one, which may be for another tenant', async () => {
  const pool = new pg.Pool({ connectionString: own.database.url, max: 1 })
  const storage = createKyselyStorage({ dialect: postgres({ pool, listen: false }) })
  for (let n = 0; n < 10; n++) {
    await storage.counts({ tenant: 'acme', jobNames: ['job'] })
    await storage.getRuns({ tenant: 'acme', limit: 10 })
    await claim(storage)
  }
  const { rows } = await pool.query<{ readonly statement: string }>('select statement from pg_prepared_statements')
  await storage.close()
  await pool.end()
  const statements = rows.map(({ statement }) => statement)
  expect(statements.filter((statement) => statement.includes('skip locked'))).toHaveLength(1)
  expect(statements.filter((statement) => /r.tenant = \$/.test(statement))).toEqual([])
})
