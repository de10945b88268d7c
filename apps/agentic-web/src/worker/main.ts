import { readWorkerConfig } from '../config'
import { createLog } from '../log'
import { untilTold } from '../process'
import { startWorker } from './start'

const log = createLog('worker')

await untilTold(log, async () => {
  const config = readWorkerConfig(process.env)
  const worker = await startWorker(config, log)
  log('info', 'working', { worker_id: worker.workerId, pid: process.pid })
  return worker
})
