/** @typedef {import('@coji/durably/queue').Task} Task */

/**
 * What became of the mails, and of those that were not sent, why.
 *
 * @param {readonly Task[]} tasks
 */
export function summaryOf(tasks) {
  const sent = tasks.filter(({ state }) => state === 'succeeded')
  const retried = sent.filter(({ attempts }) => attempts > 1)
  const dead = tasks.filter(({ state }) => state === 'dead')
  return [
    `sent      ${count(sent)}`,
    `  retried ${count(retried)}, which took more than one attempt`,
    `dead      ${count(dead)}`,
    ...dead.map((task) => `  ${recipientOf(task).padEnd(24)} ${attemptsOf(task)}  ${task.lastError}`),
  ]
}

/**
 * What the mail server has of these mails.
 *
 * @param {readonly import('./mail-server.js').Received[]} received
 */
export function arrivalsOf(received) {
  const mailboxes = new Set(received.map(({ to }) => to))
  const twice = received.length - mailboxes.size
  return `The mail server has taken mails for ${mailboxes.size} addresses${twice === 0 ? '' : `, ${twice} of them twice`}.`
}

/** @param {Task} task */
export function recipientOf({ payload }) {
  return /** @type {import('./mails.js').Mail} */ (payload).to
}

/** @param {Task} task */
function attemptsOf({ attempts }) {
  return `${attempts} ${attempts === 1 ? 'attempt ' : 'attempts'}`
}

/** @param {readonly Task[]} tasks */
function count({ length }) {
  return String(length).padStart(3)
}
