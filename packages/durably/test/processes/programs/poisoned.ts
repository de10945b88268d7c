import { z } from 'zod'
import { createDurably, defineJob } from '../../../src/index'
import { connectTo, type Place } from './drivers'
import { readConfig, tell } from './parent'
import { patiently } from './patiently'

export interface PoisonedConfig {
  readonly place: Place
  readonly workerId: string
  readonly concurrency: number
  readonly maxCrashes: number
  readonly stepMs: number
  readonly deadWorkerIds: readonly string[]
}

const STEPS = 3

/** The first step of a poison run ends the process; the others are slow enough to be under way then. */
export const ordinaryOrPoison = (stepMs: number) =>
  defineJob({ name: 'job', input: z.object({ isPoison: z.boolean() }) }, async (ctx, { isPoison }) => {
    for (let n = 1; n <= STEPS; n++) {
      await ctx.run(`step-${n}`, async () => {
        await new Promise((resolve) => setTimeout(resolve, isPoison ? stepMs / 4 : stepMs))
        if (isPoison) process.exit(1)
        return n
      })
    }
  })

const config = readConfig<PoisonedConfig>()
const { place, workerId, concurrency, maxCrashes, stepMs, deadWorkerIds } = config
const dialect = await connectTo(place)
const durably = createDurably({ dialect, workerId, concurrency, maxCrashes, pollingInterval: 100, logger: null })
durably.register({ job: ordinaryOrPoison(stepMs) })

for (const workerOfBefore of deadWorkerIds) await patiently(() => durably.recover({ workerId: workerOfBefore }))
tell({ type: 'recovered' })
durably.start()
// Thousands of waits at once would be most of what a busy machine does.
for (;;) {
  const { pending, running } = await patiently(() => durably.counts())
  if (pending + running === 0) break
  await new Promise((resolve) => setTimeout(resolve, 100))
}
await durably.close()
