import { PermanentError, RetryAfterError } from '@coji/durably'
import { createTransport } from 'nodemailer'

/**
 * The handler: sends one mail, and says what a failure means for the task.
 *
 * @param {{ readonly port: number }} server
 */
export function sendMailThrough({ port }) {
  const transport = createTransport({ host: '127.0.0.1', port, ignoreTLS: true })

  /**
   * @param {import('./mails.js').Mail} mail
   * @param {import('@coji/durably/queue').TaskContext} ctx
   */
  return async (mail, { taskId, signal }) => {
    // The same in every attempt: whoever gets the mail twice can tell.
    const messageId = `<${taskId}@beetles.example>`
    try {
      await transport.sendMail({ ...mail, from: 'post@beetles.example', messageId, signal })
    } catch (error) {
      throw meaningOf(error)
    }
  }
}

/**
 * What the queue makes of a failure: 5xx is never tried again, a server that says when to come back is obeyed, and
 * everything else is tried again after a while.
 *
 * @param {unknown} error
 */
function meaningOf(error) {
  const { code, text } = answerIn(error)
  if (code >= 500) return new PermanentError(text, { cause: error })
  const seconds = /retry in ([\d.]+) s/.exec(text)?.[1]
  if (code >= 400 && seconds !== undefined) return new RetryAfterError(text, Number(seconds) * 1000, { cause: error })
  return error
}

/**
 * What the server said; code 0 if it said nothing.
 *
 * @param {unknown} error
 */
function answerIn(error) {
  if (!(error instanceof Error)) return { code: 0, text: '' }
  const code = 'responseCode' in error ? Number(error.responseCode) : 0
  return { code, text: 'response' in error ? String(error.response) : error.message }
}
