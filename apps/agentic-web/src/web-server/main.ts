import { once } from 'node:events'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createLog } from '../log'
import { untilTold } from '../process'
import { createWebServer } from './server'

const log = createLog('web')
const DRAIN_MS = 5000

await untilTold(log, async () => {
  const { API_URLS = '', PORT = '8080', HOST = '0.0.0.0', WEB_FOLDER } = process.env
  const server = createWebServer({
    folder: WEB_FOLDER || join(dirname(fileURLToPath(import.meta.url)), 'web'),
    apiUrls: API_URLS.split(',').filter((url) => url !== ''),
  })
  server.listen(Number(PORT), HOST)
  await once(server, 'listening')
  log('info', 'listening', { port: Number(PORT), pid: process.pid })
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
