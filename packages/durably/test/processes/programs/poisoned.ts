import { z } from 'zod'
import { createDurably, defineJob } from '../../../src/index'
import { connect as connectToServer } from '../../postgres/programs/connect'
import { connect, type DriverName } from './drivers'
import { readConfig, tell } from './parent'

export interface PoisonedConfig {
  readonly place: { readonly driver: DriverName; readonly file: string } | { readonly url: string }
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
const dialect = 'url' in place ? connectToServer(place.url) : connect(place.driver, place.file)
const durably = createDurably({ dialect, workerId, concurrency, maxCrashes, pollingInterval: 100, logger: null })
const { job } = durably.register({ job: ordinaryOrPoison(stepMs) })
for (const dead of deadWorkerIds) await durably.recover({ workerId: dead })
tell({ type: 'recovered' })
durably.start()
for (;;) {
  const open = await job.getRuns({ status: ['pending', 'running'] })
  if (open.length === 0) break
  await Promise.all(open.map(({ id }) => job.wait(id)))
}
await durably.close()
