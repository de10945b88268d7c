import { recipientOf } from './summary.js'

/**
 * A line for each mail that could not be sent, as it happens.
 *
 * @param {object} params
 * @param {Pick<import('@coji/durably/queue').TaskQueue, 'on'>} params.queue
 * @param {readonly import('@coji/durably/queue').Task[]} params.tasks
 * @param {(line: string) => void} params.print
 */
export function tellRetries({ queue, tasks, print }) {
  const recipients = new Map(tasks.map((task) => [task.id, recipientOf(task)]))
  /** @param {{ when: string, taskId: string, why: string }} params */
  const tell = ({ when, taskId, why }) =>
    print(`${when.padEnd(14)} ${(recipients.get(taskId) ?? taskId).padEnd(29)} ${why}`)

  queue.on('retry_scheduled', ({ taskId, error, backoffMs }) => {
    tell({ when: `again in ${(backoffMs / 1000).toFixed(1)} s`, taskId, why: error })
  })
  queue.on('dead', ({ taskId, error }) => tell({ when: 'dead', taskId, why: error }))
  queue.on('enqueued', ({ taskId, cause }) => {
    if (cause === 'recovered') tell({ when: 'again at once', taskId, why: 'The process that was sending it is gone.' })
  })
}
