import { parseArgs } from 'node:util'
import { countsUntilIdle } from './counts.js'
import { openMailQueue } from './mail-queue.js'
import { startMailServer } from './mail-server.js'
import { keyOf, MAILS } from './mails.js'
import { tellRetries } from './retries.js'
import { openScreen } from './screen.js'
import { atSpeed } from './speed.js'
import { arrivalsOf, summaryOf } from './summary.js'

const file = /** @type {const} */ ({ type: 'string' })
const { database, received, log } = parseArgs({ options: { database: file, received: file, log: file } }).values

const screen = openScreen(process.stdout)
const server = await startMailServer({ record: received ?? (database && `${database}-received.jsonl`) })
const queue = openMailQueue({ port: server.port, database, log })

async function enqueueAll() {
  const items = MAILS.map((mail) => ({ payload: mail, options: { dedupeKey: keyOf(mail) } }))
  const tasks = await queue.enqueueMany('send_mail', items)
  const isNew = tasks.some(({ deduplicated }) => !deduplicated)
  screen.print(`${tasks.length} mails ${isNew ? '' : `of ${database} `}for the SMTP server on port ${server.port}`)
  tellRetries({ queue, tasks, print: screen.print })
}

/** Returns when every mail is sent or dead. */
async function workOff() {
  for await (const counts of countsUntilIdle(queue)) screen.show(counts)
  screen.leave()
  screen.print(`\n${summaryOf(await queue.list({ limit: MAILS.length })).join('\n')}\n`)
}

let isStopping = false

async function stop() {
  if (isStopping) return
  isStopping = true
  // What is not sent by then is given back to the queue.
  await queue.stop({ timeout: atSpeed(500) })
  const { queued, running, retry_scheduled } = await queue.countsByState()
  screen.leave()
  screen.print(`\nStopped with ${queued + running + retry_scheduled} mails to go.`)
  screen.print(database === undefined ? 'They were in memory and are gone.' : 'The next start sends them.')
  process.exit(130)
}

// npm passes on a Ctrl-C that this process has got already.
process.on('SIGINT', stop)
process.on('SIGTERM', stop)

await enqueueAll()
queue.start()
await workOff()
server.repair()
const redriven = await queue.redrive({ type: 'send_mail' })
screen.print(`The mail server was repaired, and the dead are tried again: ${redriven}\n`)
await workOff()
screen.print(arrivalsOf(server.received))
await queue.close()
await server.close()
