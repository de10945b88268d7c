import { Logger, makeWorkerUtils, run } from 'graphile-worker'
import { beside, durabilityOfPostgres } from '../databases.mjs'

export const concurrency = { runs: 1, tasks: 24 }

const logger = new Logger(() => () => {})

/** Its documented way to be fast at many jobs; one job alone starts sooner without. */
const IN_BATCHES = { preset: { worker: { localQueue: { size: 500 }, completeJobBatchDelay: 0 } } }

export async function openTasks({ database, concurrency, body }) {
  const connectionString = database.url
  const utils = await makeWorkerUtils({ connectionString, logger })
  await utils.migrate()
  const taskList = { bench: (payload) => body(payload) }
  return {
    durability: () => durabilityOfPostgres(connectionString),
    enqueue: (payload) => utils.addJob('bench', payload),
    enqueueMany: (payloads) => utils.addJobs(payloads.map((payload) => ({ identifier: 'bench', payload }))),
    start: () =>
      run({
        ...{ connectionString, logger, taskList, concurrency, noHandleSignals: true },
        ...(concurrency > 1 && IN_BATCHES),
      }),
    unfinished: async () => Number(await beside(database, 'select count(*) from graphile_worker._private_jobs')),
  }
}
