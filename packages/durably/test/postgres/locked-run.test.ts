import { expect, it } from 'vitest'
import { z } from 'zod'
import { paced } from '../../../../test/pace'
import { newPlace, newSession } from './kit'

it('a run that somebody holds locked keeps no other run from being committed', async () => {
  const place = await newPlace()
  const somebody = await newSession(place.url)
  const durably = place.open({ concurrency: 4 })
  const open = new Map<number, () => void>()
  const job = durably.defineJob({ name: 'wait', input: z.object({ n: z.number() }) }, async (ctx, { n }) => {
    await ctx.run('wait', () => new Promise<void>((resolve) => open.set(n, resolve)))
    return n
  })
  const runs = await job.batchTrigger([0, 1, 2, 3].map((n) => ({ payload: { n } })))
  durably.start()
  await expect.poll(() => open.size).toBe(4)
  await somebody.query('begin')
  await somebody.query('select 1 from durably_runs where id = $1 for update', [runs[0]?.id])
  for (const settle of open.values()) settle()
  for (const run of runs.slice(1)) await job.wait(run.id)
  // The next ones are not in its line either.
  const next = await job.trigger({ n: 4 })
  await expect.poll(() => open.size).toBe(5)
  open.get(4)?.()
  expect(await job.wait(next.id, { timeout: paced(4000) })).toMatchObject({ output: 4 })
  expect(await job.getRun(runs[0]?.id ?? '')).toMatchObject({ status: 'running' })
  await somebody.query('rollback')
  expect(await job.wait(runs[0]?.id ?? '')).toMatchObject({ output: 0 })
  await durably.close()
})
