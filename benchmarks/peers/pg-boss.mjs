import { PgBoss } from 'pg-boss'
import { beside, durabilityOfPostgres } from '../databases.mjs'

export const concurrency = { runs: 1, tasks: 400 }

/** The fastest that its options allow: two workers that take 200 at a time and do not wait while there are more. */
const BURST = { localConcurrency: 2, batchSize: 200, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 }

export async function openTasks({ database, body }) {
  const boss = new PgBoss({ connectionString: database.url })
  boss.on('error', () => {})
  await boss.start()
  await boss.createQueue('bench')
  return {
    durability: () => durabilityOfPostgres(database.url),
    enqueue: (payload) => boss.send('bench', payload),
    enqueueMany: (payloads) =>
      boss.insert(
        'bench',
        payloads.map((data) => ({ data })),
      ),
    start: () =>
      boss.work('bench', BURST, async (jobs) => {
        for (const { data } of jobs) await body(data)
      }),
    unfinished: async () => Number(await beside(database, "select count(*) from pgboss.job where state < 'completed'")),
  }
}
