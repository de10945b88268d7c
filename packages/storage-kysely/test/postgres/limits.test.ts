import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { createDatabase, type PostgresDatabase } from '../../../../test/postgres'
import { createKyselyStorage, type KyselyStorage } from '../../src'
import { postgres } from '../../src/drivers/postgres'
import { claim, claimWithin, newRun } from '../builders'
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

beforeEach(() => watch.query('truncate durably_runs, durably_job_starts'))

afterAll(async () => {
  await storage.close()
  await watch.end()
  await database.drop()
})

it('who sleeps in the middle of a claim under limits holds up no other job, and these claims for a moment', async () => {
  await storage.enqueue([newRun(), newRun({ jobName: 'other' })])
  await watch.query('begin')
  await watch.query(`select pg_advisory_xact_lock(hashtext('durably_limits'), hashtext('job'))`)
  try {
    const { runs, opensInMs } = await claimWithin(storage, { concurrency: 5 })
    expect(runs).toEqual([])
    expect(opensInMs).toBeGreaterThan(0)
    expect((await claimWithin(storage, { jobName: 'other', concurrency: 5 })).runs).toHaveLength(1)
    expect(await claim(storage, 10)).toHaveLength(1)
  } finally {
    await watch.query('rollback')
  }
})

it('of 100 claims at once on many connections none exceeds the limits', async () => {
  const storages = Array.from({ length: 4 }, () =>
    createKyselyStorage({ dialect: postgres({ connectionString: database.url, listen: false }) }),
  )
  const limits = [
    { jobName: 'slots', concurrency: 17 },
    { jobName: 'rate', rateLimit: { max: 13, per: 3_600_000 } },
  ] as const
  await storage.enqueue(limits.flatMap(({ jobName }) => Array.from({ length: 100 }, () => newRun({ jobName }))))
  await Promise.all(
    Array.from({ length: 100 }, (_, n) => claimWithin(storages[n % 4] ?? storage, limits[n % 2] ?? {}, 2)),
  )
  // While nobody else asks.
  for (const each of limits) await claimWithin(storage, each)
  const running = await watch.query(
    `select job_name, count(*)::int as runs from durably_runs where status = 'running' group by 1 order by 1 desc`,
  )
  expect(running).toEqual([
    { job_name: 'slots', runs: 17 },
    { job_name: 'rate', runs: 13 },
  ])
  for (const one of storages) await one.close()
})
