import { betterSqlite3 } from '@coji/durably/better-sqlite3'
import { createTaskQueue } from '@coji/durably/queue'
import { mailSchema } from './mails.js'
import { sendMailThrough } from './send-mail.js'
import { atSpeed } from './speed.js'
import { writeLinesTo } from './task-log.js'

const DAY_MS = 24 * 3_600_000

/**
 * @typedef {object} MailQueueOptions
 * @property {number} port of the SMTP server
 * @property {string | undefined} database a SQLite file; without it tasks are in the memory of this process
 * @property {string | undefined} log a file that gets a line for each event of a task
 */

/** @param {MailQueueOptions} options */
export function openMailQueue({ port, database, log }) {
  const options = {
    concurrency: 8,
    retry: { maxAttempts: 3, delay: { from: atSpeed(600), upTo: atSpeed(2000) } },
    keep: { succeeded: { age: DAY_MS }, dead: { age: 7 * DAY_MS } },
    // After a kill, what was being sent is sent again when its worker has been silent for this long.
    heartbeatInterval: 500,
    staleThreshold: 2000,
    ...(log !== undefined && { logger: writeLinesTo(log) }),
  }
  /** @type {import('@coji/durably/queue').TaskQueue<{ send_mail: import('./mails.js').Mail }>} */
  const queue = createTaskQueue(database === undefined ? options : { ...options, dialect: betterSqlite3(database) })
  queue.register({
    taskType: 'send_mail',
    schema: mailSchema,
    timeout: atSpeed(1500),
    // What the mail server allows: so many attempts in so many milliseconds.
    rateLimit: { max: 20, per: atSpeed(1000) },
    execute: sendMailThrough({ port }),
  })
  return queue
}
