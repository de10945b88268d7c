import { afterEachTest } from '../../../../test/leftovers'
import { createMemoryStorage, type Storage } from '../../src/index'
import {
  createTaskQueue,
  type TaskEvent,
  TASK_EVENT_TYPES,
  type TaskQueue,
  type TaskQueueOptions,
} from '../../src/queue'
import { inLane } from '../../../../test/scale'
import { BETTER_SQLITE3, LIBSQL, POSTGRES } from '../databases'
import { newFile, openOn } from '../instances'

export interface QueuePlace {
  readonly name: string
  /** A storage of a test's own, ready. */
  open(): Promise<Storage>
}

/** Everything at the public API of the queue holds on each of these. */
export const PLACES: readonly QueuePlace[] = [
  { name: 'memory', open: async () => createMemoryStorage() },
  ...inLane([LIBSQL, BETTER_SQLITE3, POSTGRES], (one) => one !== LIBSQL).map(({ name, dialect }) => ({
    name,
    async open() {
      const durably = openOn(dialect(newFile()))
      await durably.migrate()
      return durably.storage
    },
  })),
]

const opened: TaskQueue[] = []

afterEachTest(async () => {
  await Promise.all(opened.splice(0).map((queue) => queue.stop({ timeout: 0 })))
})

/** A queue that is stopped after the test, and tries again at once. */
export function openQueue(storage: Storage, options: Partial<TaskQueueOptions> = {}): TaskQueue {
  const queue = createTaskQueue({
    storage,
    retry: { maxAttempts: 5, delay: 0 },
    pollingInterval: 50,
    logger: null,
    ...options,
  })
  opened.push(queue)
  return queue
}

/** What the queue says from now on, in its order. */
export function recordTasks(queue: TaskQueue): TaskEvent[] {
  const events: TaskEvent[] = []
  for (const type of TASK_EVENT_TYPES) queue.on(type, (event) => events.push(event))
  return events
}
