import { createDurably, declareJob, systemClock } from '@coji/durably-core'
import { createKyselyStorage } from '@coji/durably-storage-kysely'
import { betterSqlite3 } from '@coji/durably-storage-kysely/better-sqlite3'
import { postgres } from '@coji/durably-storage-kysely/postgres'
import { createInbox, createScheduler } from '../../../src/index'

/** Fires schedules and delivers messages until it is killed; its clock is off by so many milliseconds. */
const [driver = '', location = '', every = '', offset = '0'] = process.argv.slice(2)
const dialect = driver === 'postgres' ? postgres({ connectionString: location }) : betterSqlite3(location)
const clock = { ...systemClock, now: () => Date.now() + Number(offset) }
const storage = createKyselyStorage({ dialect })
const durably = createDurably({ storage, logger: null, environment: { clock } })
// It creates runs of this one, and executes none.
durably.register({ tick: declareJob({ name: 'tick', input: anything() }) })
const schedules = createScheduler(durably, { pollingInterval: 100 })
for (const name of ['one', 'other']) {
  const missed = { all: true, max: 1000 } as const
  schedules.define(name, { job: 'tick', payload: name, every: Number(every), missed })
}
createInbox(durably, { pollingInterval: 100 })
durably.defineJob({ name: 'told', on: 'told', input: anything() }, async () => {})
durably.start()
// Whoever hears the name of the message may rely on it.
const id = crypto.randomUUID()
const isKept = await durably.publish({ type: 'told', payload: id, dedupeKey: id }).then(
  () => true,
  () => false,
)
process.stdout.write(isKept ? `${id}\n` : 'started\n')

function anything() {
  return { '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) } } as const
}
