import { parseArgs } from 'node:util'
import { createDurably } from '@coji/durably'
import { libsql } from '@coji/durably/libsql'
import { createInbox, createScheduler } from '@coji/durably-cluster'
import { report, remind, ship } from './jobs.js'
import { listen } from './webhook.js'

const text = /** @type {const} */ ({ type: 'string' })
const { values } = parseArgs({ options: { database: text, port: text, every: text } })
const { database = 'schedules.db', port = '3000', every } = values

const durably = createDurably({ dialect: libsql(`file:${database}`), concurrency: 4 })
durably.register({ report, remind, ship })

const schedules = createScheduler(durably)
createInbox(durably)

// Each night by the clocks of Tokyo; with --every, so often that you need not wait for it.
const timing = every === undefined ? { cron: '0 2 * * *', zone: 'Asia/Tokyo' } : { every: Number(every) }
schedules.define('report', { job: report, payload: {}, ...timing, missed: { all: true, max: 100 } })

await durably.migrate()
if ((await schedules.get('lunch')) === null) {
  await schedules.create('lunch', { job: remind, payload: { of: 'lunch' }, at: new Date(Date.now() + 3000) })
}
durably.on('schedule:missed', ({ scheduleName, count }) => console.log(`${scheduleName}: ${count} missed`))
durably.on('inbox:unwanted', ({ messageType }) => console.log(`nobody wants "${messageType}"`))
durably.start()

const webhook = await listen(durably, Number(port))
console.log(`webhook on port ${webhook.port}`)

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, async () => {
    webhook.close()
    await durably.close()
  })
}
