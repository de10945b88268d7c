import { setTimeout as sleep } from 'node:timers/promises'

const LOOK_MS = 50

/**
 * The counts of a queue, now and again, until nothing waits or runs any more.
 *
 * @param {Pick<import('@coji/durably/queue').TaskQueue, 'countsByState'>} queue
 */
export async function* countsUntilIdle(queue) {
  for (;;) {
    const counts = await queue.countsByState()
    yield counts
    if (counts.queued + counts.running + counts.retry_scheduled === 0) return
    await sleep(LOOK_MS)
  }
}
