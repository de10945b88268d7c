import Database from 'better-sqlite3'
import { better, defineQueue, defineWorker } from 'plainjob'
import { beside, durabilityOfSqlite } from '../databases.mjs'

export const concurrency = { runs: 1, tasks: 1 }

/** By default it writes each job to the console. */
const logger = { debug() {}, info() {}, warn() {}, error() {} }

export async function openTasks({ database, body }) {
  const connection = new Database(database.file)
  const queue = defineQueue({ connection: better(connection), logger })
  const worker = defineWorker('bench', (job) => body(JSON.parse(job.data)), { queue, logger })
  return {
    durability: () => durabilityOfSqlite(connection),
    enqueue: (payload) => queue.add('bench', payload),
    enqueueMany: (payloads) => queue.addMany('bench', payloads),
    start: () => void worker.start(),
    unfinished: () => beside(database, 'select count(*) from plainjob_jobs where status in (0, 1)'),
  }
}
