import { expect, it } from 'vitest'
import { z } from 'zod'
import { reportSuite } from '../../../../test/report'
import { scaled } from '../../../../test/scale'
import { newPlace } from './kit'

const RUNS = scaled({ quick: 300, full: 2000 })
const STEPS = 5
/** The first step is stored by itself, the last one with the end of its run. */
const COMMITS = RUNS * (STEPS - 1)

it('commits of steps touch no index', async () => {
  const place = await newPlace()
  const durably = place.open({ concurrency: 10 })
  const job = durably.defineJob({ name: 'job', input: z.object({}) }, async (ctx) => {
    for (let step = 0; step < STEPS; step++) await ctx.run(`step ${step}`, () => step)
  })
  for (let n = 0; n < RUNS; n += 100) await job.batchTrigger(Array.from({ length: 100 }, () => ({ payload: {} })))
  await durably.runUntilIdle()
  // A session tells what it has done when it ends.
  await durably.close()
  const counted = async () => {
    const [row] = await place.query<{ readonly updates: number; readonly hot: number }>(
      `select n_tup_upd::int as updates, n_tup_hot_upd::int as hot from pg_stat_user_tables
        where relname = 'durably_runs' and schemaname = current_schema`,
    )
    return row ?? { updates: 0, hot: 0 }
  }
  await expect.poll(async () => (await counted()).updates).toBeGreaterThanOrEqual(2 * RUNS + COMMITS)
  const { updates, hot } = await counted()
  // A claim and an end change what the next run is found by.
  const percent = Math.round((100 * hot) / (updates - 2 * RUNS))
  reportSuite({ suite: 'HOT updates on Postgres', runs: RUNS, updates, hot, 'percent of commits': percent })
  expect(percent).toBeGreaterThanOrEqual(75)
})
