import { DBOS, DBOSClient } from '@dbos-inc/dbos-sdk'
import { beside, durabilityOfPostgres } from '../databases.mjs'

export const concurrency = { runs: 100 }

const QUEUE = { queueName: 'bench' }

export async function openRuns({ database, concurrency, body }) {
  const { url } = database
  DBOS.setConfig({
    name: 'bench',
    systemDatabaseUrl: url,
    logLevel: 'error',
    applicationVersion: '1',
    executorID: 'bench',
  })
  const workflow = DBOS.registerWorkflow(
    async (payload) => {
      await body(payload, (name, run) => DBOS.runStep(run, { name }))
      return { ok: true }
    },
    { name: 'bench' },
  )
  await DBOS.migrate(url)
  const client = await DBOSClient.create({ systemDatabaseUrl: url })
  // It asks its queue by the clock, once a second by default, and takes as many as it may run at a time.
  await client.registerQueue('bench', { workerConcurrency: concurrency, minPollingIntervalMs: 50 })
  return {
    durability: () => durabilityOfPostgres(url),
    enqueue: (payload) => client.enqueue({ workflowName: 'bench', appVersion: '1', ...QUEUE }, payload),
    runOne: concurrency === 1 ? (payload) => workflow(payload) : undefined,
    start: () => DBOS.launch(),
    unfinished: async () =>
      Number(
        await beside(database, "select count(*) from dbos.workflow_status where status in ('PENDING', 'ENQUEUED')"),
      ),
  }
}
