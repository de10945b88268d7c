import { MOST_STARTS } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createKyselyStorage, type KyselyStorage } from '../src'
import { claimWithin, newRun } from './builders'
import { DATABASES, type OpenDatabase } from './databases'

const HOUR_MS = 3_600_000

/** One for each way of writing the statements. */
const PLACES = DATABASES.filter(({ name }) => name === 'better-sqlite3' || name === 'postgres')

describe.each(PLACES)('starts on $name', (database) => {
  let opened: OpenDatabase
  let storage: KyselyStorage

  beforeAll(async () => {
    opened = await database.open()
    storage = createKyselyStorage({ dialect: opened.connect() })
    await storage.migrate()
  })

  afterAll(async () => {
    await storage.close()
    await opened.dispose()
  })

  /** As so many claims would have left them, an hour ago. */
  async function haveBegun(jobName: string, count: number): Promise<void> {
    const hourAgo = new Date(Date.now() - HOUR_MS).toISOString()
    await sql`with recursive n (nth) as (select 1 union all select nth + 1 from n where nth < ${sql.lit(count)})
      insert into durably_job_starts (job_name, nth, started_at)
      select ${sql.lit(jobName)}, nth, ${sql.lit(hourAgo)} from n`.execute(storage.db)
  }

  const startsOf = async (jobName: string) =>
    (await storage.db.selectFrom('durably_job_starts').select('nth').where('job_name', '=', jobName).execute())
      .map(({ nth }) => Number(nth))
      .sort((a, b) => a - b)

  it('are kept as far as a rate can look back, and those of other jobs apart', async () => {
    await haveBegun('job', MOST_STARTS + 1)
    await haveBegun('other', 1)
    await storage.enqueue([newRun(), newRun(), newRun()])
    const rateLimit = { max: MOST_STARTS, per: HOUR_MS - 60_000 }
    expect((await claimWithin(storage, { rateLimit })).runs).toHaveLength(3)
    const starts = await startsOf('job')
    expect(starts.at(-1)).toBe(MOST_STARTS + 4)
    // Those before this claim's, or all but its own: nothing that the rate needs is gone.
    expect(starts.length).toBeGreaterThanOrEqual(MOST_STARTS)
    expect(starts.length).toBeLessThanOrEqual(MOST_STARTS + 3)
    expect(await startsOf('other')).toEqual([1])
  })

  it('are counted exactly at the largest rate', async () => {
    await haveBegun('full', MOST_STARTS)
    await storage.enqueue([newRun({ jobName: 'full' }), newRun({ jobName: 'full' })])
    const limits = { jobName: 'full', rateLimit: { max: MOST_STARTS, per: HOUR_MS + 60_000 } }
    const { runs, opensInMs } = await claimWithin(storage, limits)
    expect(runs).toEqual([])
    expect(opensInMs).toBeGreaterThan(0)
    expect(opensInMs).toBeLessThanOrEqual(60_000)
    await sql`delete from durably_job_starts where job_name = 'full' and nth = 1`.execute(storage.db)
    expect((await claimWithin(storage, limits)).runs).toHaveLength(1)
  })

  it('are not written down for a job without a rate', async () => {
    await storage.enqueue([newRun({ jobName: 'slots' })])
    expect((await claimWithin(storage, { jobName: 'slots', concurrency: 3 })).runs).toHaveLength(1)
    expect(await startsOf('slots')).toEqual([])
  })
})
