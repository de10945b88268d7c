import { z } from 'zod'
import { createDurably, defineJob } from '../../../src/index'
import { connectTo } from './drivers'
import { readConfig } from './parent'
import { patiently } from './patiently'
import type { PoisonedConfig } from './poisoned'

export interface CrowdedConfig extends PoisonedConfig {
  /** With so many bodies under way at once the system ends the process. */
  readonly crowd: number
}

const config = readConfig<CrowdedConfig>()
const { place, workerId, concurrency, maxCrashes, stepMs, deadWorkerIds, crowd } = config

let underWay = 0

const heavy = defineJob({ name: 'job', input: z.object({ isPoison: z.boolean() }) }, async (ctx) => {
  await ctx.run('heavy', async () => {
    underWay += 1
    if (underWay >= crowd) process.kill(process.pid, 'SIGKILL')
    await new Promise((resolve) => setTimeout(resolve, stepMs))
    underWay -= 1
  })
})

const dialect = await connectTo(place)
const durably = createDurably({ dialect, workerId, concurrency, maxCrashes, pollingInterval: 100, logger: null })
const { job } = durably.register({ job: heavy })
for (const dead of deadWorkerIds) await patiently(() => durably.recover({ workerId: dead }))
durably.start()
const open = await patiently(() => job.getRuns({ status: ['pending', 'running'] }))
await Promise.allSettled(open.map(({ id }) => job.wait(id)))
await durably.close()
