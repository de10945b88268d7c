import { createDurably, defineJob } from '@coji/durably-core'
import { createKyselyStorage } from '@coji/durably-storage-kysely'
import { postgres } from '@coji/durably-storage-kysely/postgres'
import { createCluster, createScheduler } from '../../../src/index'

/** A worker of a cluster, which may lead, until it is killed. */
const [url = '', workerId = '', lease = '', firstStepMs = '', every = ''] = process.argv.slice(2)
const storage = createKyselyStorage({ dialect: postgres({ connectionString: url }) })
const durably = createDurably({
  ...{ storage, workerId, logger: null, concurrency: 3 },
  ...{ pollingInterval: 200, heartbeatInterval: Number(lease) / 3, staleThreshold: Number(lease) * 2 },
})
const input = { '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) } } as const
durably.register({
  work: defineJob({ name: 'work', input, placement: 'leader' }, async (ctx) => {
    await ctx.run('first', () => pass(Number(firstStepMs)))
    await ctx.run('second', () => pass(20))
  }),
})
createCluster(durably, { lease: Number(lease), reassignAfter: Number(lease), pollingInterval: 200 })
if (every !== '') {
  const schedules = createScheduler(durably, { pollingInterval: 100 })
  schedules.define('often', { job: 'work', payload: null, every: Number(every), missed: { all: true, max: 1000 } })
}
durably.start()
process.stdout.write('started\n')

function pass(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
