import type { Dialect } from 'kysely'
import { betterSqlite3 } from '../../../src/better-sqlite3'
import { libsql } from '../../../src/libsql'
import { postgres } from '../../../src/postgres'
import { createTaskQueue } from '../../../src/queue'
import { readConfig, tell, witness } from '../../processes/programs/parent'
import { type QueueDriver, type QueueWorkerConfig, MORTAL } from './queue-worker-config'

const CONNECT: Record<QueueDriver, (place: string) => Dialect> = {
  libsql: (place) => libsql(`file:${place}`),
  'better-sqlite3': (place) => betterSqlite3(place),
  postgres: (place) => postgres({ connectionString: place }),
}

const config = readConfig<QueueWorkerConfig>()
const queue = createTaskQueue<{ work: number }>({
  dialect: CONNECT[config.driver](config.place),
  concurrency: 4,
  logger: null,
  ...MORTAL,
})
queue.register('work', async (n, { taskId, attempt }) => {
  witness(config.witness, taskId, String(attempt))
  tell({ type: 'begun' })
  await new Promise((resolve) => setTimeout(resolve, 10))
  if (attempt === 1 && n % 3 === 0) throw new Error('no luck')
})
queue.start()
