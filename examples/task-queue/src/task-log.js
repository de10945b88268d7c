import { appendFileSync } from 'node:fs'

/**
 * A logger for the queue: a file of JSON lines.
 *
 * @param {string} file
 * @returns {import('@coji/durably/queue').TaskLogger}
 */
export function writeLinesTo(file) {
  /** @param {string} level */
  const lines = (level) => (/** @type {string} */ message, /** @type {object} */ fields) => {
    appendFileSync(file, `${JSON.stringify({ level, message, ...fields })}\n`)
  }
  return { info: lines('info'), warn: lines('warn'), error: lines('error') }
}
