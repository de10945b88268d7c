import { expect, it } from 'vitest'
import { createKyselyStorage } from '../../src'
import { postgres } from '../../src/drivers/postgres'
import { claim, claimWithin, newRun } from '../builders'
import { useOwnStorage } from './own-storage'

const own = useOwnStorage()

it('who sleeps in the middle of a claim under limits holds up no other job, and these claims for a moment', async () => {
  await own.storage.enqueue([newRun(), newRun({ jobName: 'other' })])
  await own.watch.query('begin')
  await own.watch.query(`select pg_advisory_xact_lock(hashtext('durably_limits'), hashtext('job'))`)
  try {
    const { runs, opensInMs } = await claimWithin(own.storage, { concurrency: 5 })
    expect(runs).toEqual([])
    expect(opensInMs).toBeGreaterThan(0)
    expect((await claimWithin(own.storage, { jobName: 'other', concurrency: 5 })).runs).toHaveLength(1)
    expect(await claim(own.storage, 10)).toHaveLength(1)
  } finally {
    await own.watch.query('rollback')
  }
})

it('of 100 claims at once on many connections none exceeds the limits', async () => {
  const storages = Array.from({ length: 4 }, () =>
    createKyselyStorage({ dialect: postgres({ connectionString: own.database.url, listen: false }) }),
  )
  const limits = [
    { jobName: 'slots', concurrency: 17 },
    { jobName: 'rate', rateLimit: { max: 13, per: 3_600_000 } },
  ] as const
  await own.storage.enqueue(limits.flatMap(({ jobName }) => Array.from({ length: 100 }, () => newRun({ jobName }))))
  await Promise.all(
    Array.from({ length: 100 }, (_, n) => claimWithin(storages[n % 4] ?? own.storage, limits[n % 2] ?? {}, 2)),
  )
  // While nobody else asks.
  for (const each of limits) await claimWithin(own.storage, each)
  const running = await own.watch.query(
    `select job_name, count(*)::int as runs from durably_runs where status = 'running' group by 1 order by 1 desc`,
  )
  expect(running).toEqual([
    { job_name: 'slots', runs: 17 },
    { job_name: 'rate', runs: 13 },
  ])
  for (const one of storages) await one.close()
})
