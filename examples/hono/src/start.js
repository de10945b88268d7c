import { parseArgs } from 'node:util'
import { createDurably } from '@coji/durably'
import { libsql } from '@coji/durably/libsql'
import { withLogPersistence } from '@coji/durably/plugins'
import { serve } from '@hono/node-server'
import { createApp } from './app.js'
import { order } from './jobs.js'

const text = /** @type {const} */ ({ type: 'string' })
const { values } = parseArgs({ options: { database: text, port: text } })
const { database = 'hono.db', port = '3000' } = values

const durably = createDurably({ dialect: libsql(`file:${database}`), concurrency: 4 })
durably.use(withLogPersistence()) // what the dashboard shows, and what is followed
durably.register({ order })
await durably.migrate()
durably.start()

const { fetch } = createApp(durably)
const server = serve({ fetch, port: Number(port), hostname: '127.0.0.1' }, (address) => {
  console.log(`http://127.0.0.1:${address.port}/admin/durably (ada, analytical)`)
})

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, async () => {
    server.close()
    if ('closeAllConnections' in server) server.closeAllConnections()
    await durably.stop({ timeout: 5000 })
    await durably.close()
  })
}
