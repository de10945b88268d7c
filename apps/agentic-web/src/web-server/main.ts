import { once } from 'node:events'
import { createServer } from 'node:http'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createLog } from '../log'
import { untilTold } from '../process'
import { createProxy } from './proxy'
import { createSite } from './site'

const log = createLog('web')
const DRAIN_MS = 5000

/** The page, and in front of the api a proxy that asks its instances in turn: what a load balancer does elsewhere. */
await untilTold(log, async () => {
  const { API_URLS = '', PORT = '8080', HOST = '0.0.0.0', WEB_FOLDER } = process.env
  const site = createSite(WEB_FOLDER || join(dirname(fileURLToPath(import.meta.url)), 'web'))
  const proxy = createProxy(API_URLS.split(',').filter((url) => url !== ''))
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://any')
    if (pathname === '/readyz' || pathname === '/healthz') return void response.writeHead(200).end('{"ok":true}')
    const isApi = /^\/(api|auth)(\/|$)/.test(pathname)
    const answered = isApi ? proxy(request, response) : site(pathname, response)
    answered.catch(() => response.destroy())
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
