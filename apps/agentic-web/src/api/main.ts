import { readApiConfig } from '../config'
import { createLog } from '../log'
import { untilTold } from '../process'
import { startApi } from './start'

const log = createLog('api')

await untilTold(log, async () => {
  const config = readApiConfig(process.env)
  const api = await startApi(config, log)
  log('info', 'listening', { url: api.url, pid: process.pid })
  return api
})
