import type { Dialect } from 'kysely'
import { createTaskQueue } from '../../../src/queue'
import { connect as connectToFile } from '../../processes/programs/drivers'
import { readConfig, tell, witness } from '../../processes/programs/parent'
import { type QueueDriver, type QueueWorkerConfig, MORTAL } from './queue-worker-config'

async function connect(driver: QueueDriver, place: string): Promise<Dialect> {
  if (driver !== 'postgres') return connectToFile(driver, place)
  return (await import('../../postgres/programs/connect')).connect(place)
}

const config = readConfig<QueueWorkerConfig>()
const queue = createTaskQueue<{ work: number }>({
  dialect: await connect(config.driver, config.place),
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
