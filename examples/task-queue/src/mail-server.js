import { once } from 'node:events'
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { SMTPServer } from 'smtp-server'
import { Faults } from './faults.js'
import { atSpeed } from './speed.js'

const DELIVERY_MS = atSpeed(150)

/** @typedef {{ readonly to: string, readonly messageId: string }} Received */

/**
 * An SMTP server on a port of its own, which notes every mail that it has taken responsibility for, and misbehaves as
 * faults.js says until it is repaired.
 *
 * @param {{ readonly record: string | undefined }} options `record`: a file that keeps the notes for the next start.
 */
export async function startMailServer({ record }) {
  const faults = new Faults()
  /** @type {Received[]} */
  const received = record === undefined ? [] : readRecord(record)

  /** @param {Received} mail */
  function note(mail) {
    received.push(mail)
    // On the disk before the client hears of it, or a kill here would lose what was promised.
    if (record !== undefined) appendFileSync(record, `${JSON.stringify(mail)}\n`)
  }

  const server = new SMTPServer({
    disabledCommands: ['AUTH', 'STARTTLS'],
    disableReverseLookup: true,
    closeTimeout: 100,
    onRcptTo({ address }, session, callback) {
      const answer = faults.answerTo(address)
      if (answer === 'accept') callback()
      else if (answer === 'drop') drop(session.id)
      else if (answer !== 'silence') callback(Object.assign(new Error(answer.text), { responseCode: answer.code }))
    },
    onData(stream, { envelope }, callback) {
      take(stream, envelope.rcptTo, note).then(() => callback(), callback)
    },
  })

  /** @param {string} id */
  function drop(id) {
    for (const connection of server.connections) if (connection.id === id) connection._socket.destroy()
  }

  // What is left is a connection that broke while it was spoken to.
  server.on('error', () => {})
  const listener = server.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const address = listener.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    /** @type {readonly Received[]} */
    received,
    repair: () => faults.repair(),
    close: () => new Promise((resolve) => server.close(() => resolve(undefined))),
  }
}

/**
 * @param {import('node:stream').Readable} stream
 * @param {readonly { readonly address: string }[]} recipients
 * @param {(mail: Received) => void} note
 */
async function take(stream, recipients, note) {
  const message = await text(stream)
  await sleep(DELIVERY_MS)
  const messageId = /^message-id: (.*)$/im.exec(message)?.[1]?.trim() ?? ''
  for (const { address } of recipients) note({ to: address, messageId })
}

/**
 * @param {string} file
 * @returns {Received[]}
 */
function readRecord(file) {
  if (!existsSync(file)) return []
  const lines = readFileSync(file, 'utf8').split('\n')
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line))
}
