import { once } from 'node:events'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readWebConfig } from '../config'
import { createLog } from '../log'
import { untilTold } from '../process'
import { createWebServer } from './server'

const log = createLog('web')
const DRAIN_MS = 5000

await untilTold(log, async () => {
  const { folder, apiUrls, port, host } = readWebConfig(process.env)
  const server = createWebServer({
    folder: folder ?? join(dirname(fileURLToPath(import.meta.url)), 'web'),
    apiUrls,
  })
  server.listen(port, host)
  await once(server, 'listening')
  log('info', 'listening', { port, pid: process.pid })
  return {
    async stop() {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeIdleConnections()
      const timer = setTimeout(() => server.closeAllConnections(), DRAIN_MS)
      await closed
      clearTimeout(timer)
    },
  }
})
