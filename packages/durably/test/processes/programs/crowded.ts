import { z } from 'zod'
import { createDurably, defineJob } from '../../../src/index'
import { connectTo } from './drivers'
import { readConfig, tell } from './parent'
import type { PoisonedConfig } from './poisoned'

export interface CrowdedConfig extends PoisonedConfig {
  /** With so many bodies under way at once the process says that it is crowded. */
  readonly crowd: number
}

const config = readConfig<CrowdedConfig>()
const { place, workerId, concurrency, maxCrashes, stepMs, deadWorkerIds, crowd } = config

let underWay = 0

const heavy = defineJob({ name: 'job', input: z.object({ isPoison: z.boolean() }) }, async (ctx) => {
  await ctx.run('heavy', async () => {
    underWay += 1
    if (underWay >= crowd) tell({ type: 'crowded' })
    await new Promise((resolve) => setTimeout(resolve, stepMs))
    underWay -= 1
  })
})

const dialect = await connectTo(place)
const durably = createDurably({ dialect, workerId, concurrency, maxCrashes, pollingInterval: 100, logger: null })
const { job } = durably.register({ job: heavy })
for (const dead of deadWorkerIds) await durably.recover({ workerId: dead })
durably.start()
const open = await job.getRuns({ status: ['pending', 'running'] })
await Promise.allSettled(open.map(({ id }) => job.wait(id)))
await durably.close()
