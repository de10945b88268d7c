import { createDurably, type SqlDurably } from '@coji/durably'
import { createInbox, createScheduler } from '@coji/durably-cluster'

/** The schedules and messages of the database, by an instance that is never started: nothing fires here, and nothing is delivered. */
export function servedSchedules({ storage }: SqlDurably) {
  const idle = createDurably({ storage, logger: null })
  return { schedules: createScheduler(idle), inbox: createInbox(idle) }
}
