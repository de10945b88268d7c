import { z } from 'zod'
import { createDurably, defineJob, type RateLimit } from '../../../src/index'
import { connectTo, type Place } from './drivers'
import { readConfig, tell, witness } from './parent'

export interface LimitedConfig {
  readonly place: Place
  readonly workerId: string
  readonly witness: string
  readonly concurrency: number
  readonly rateLimit: RateLimit
}

const config = readConfig<LimitedConfig>()
const { place, workerId, concurrency, rateLimit } = config
const dialect = await connectTo(place)
const lease = { staleThreshold: 3_600_000, heartbeatInterval: 60_000 }
const durably = createDurably({
  ...{ dialect, workerId, concurrency: 10, maxCrashes: 1000, pollingInterval: 50, logger: null },
  ...lease,
})

/** Says when a run begins and ends, as this process has it. */
async function appear(runId: string, ms: number): Promise<void> {
  witness(config.witness, runId, 'begin')
  await new Promise((resolve) => setTimeout(resolve, ms))
  witness(config.witness, runId, 'end')
}

const input = z.object({ ms: z.number() })
durably.register({
  slots: defineJob({ name: 'slots', input, concurrency, scope: 'database' }, (ctx, { ms }) => appear(ctx.runId, ms)),
  rate: defineJob({ name: 'rate', input, rateLimit, scope: 'database' }, () => {}),
})
durably.on('worker:error', ({ during, error, code }) => tell({ type: 'trouble', during, error, code }))
durably.start()
tell({ type: 'up' })
