import { Kysely, PostgresDialect } from 'kysely'
import { PostgresJSDialect } from 'kysely-postgres-js'
import postgresJs from 'postgres'
import { describe, expect, it } from 'vitest'
import { createDurably, type DurablyDatabase, type SqlDurably } from '../../src/index'
import { newPlace, newPool, newSession, type Place } from './kit'

/** A client of postgres.js that is told to end while a connection of it is reserved never does. */
const postgresJsDialect = (url: string) =>
  new PostgresJSDialect({ postgres: postgresJs(url, { max: 4, onnotice: () => {} }) })
const bareDialect = (url: string) => new PostgresDialect({ pool: newPool(url) })

interface Opened {
  readonly durably: SqlDurably
  end(): Promise<void>
}

const OPENED: Readonly<Record<string, (url: string) => Opened>> = {
  'the dialect of postgres.js': (url) => withDialect(postgresJsDialect(url)),
  'a bare PostgresDialect': (url) => withDialect(bareDialect(url)),
  'a given db on postgres.js': (url) => withDb(new Kysely<DurablyDatabase>({ dialect: postgresJsDialect(url) })),
}

function withDialect(dialect: PostgresDialect | PostgresJSDialect): Opened {
  const durably = createDurably({ dialect, logger: null })
  return { durably, end: () => durably.close() }
}

function withDb(db: Kysely<DurablyDatabase>): Opened {
  const durably = createDurably({ db, logger: null })
  return { durably, end: () => durably.close().then(() => db.destroy()) }
}

/** Resolves when so many statements wait for a lock. */
async function untilWaiting(place: Place, count: number): Promise<void> {
  const waiting = () =>
    place.query(`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)
  await expect.poll(async () => (await waiting()).length).toBe(count)
}

describe.each(Object.entries(OPENED))('close() while the database has a statement to answer, on %s', (_name, open) => {
  it('waits for the answer, sends nothing more, and ends', async () => {
    const place = await newPlace()
    const blocker = await newSession(place.url)
    const { durably, end } = open(place.url)
    await durably.migrate()
    await blocker.query('begin; lock table durably_runs in access exclusive mode')
    const read = durably.getRun('none')
    await untilWaiting(place, 1)
    const ended = end()
    await place.query('select 1')
    await expect(durably.getRun('none')).rejects.toMatchObject({ code: 'STORAGE_CLOSED' })
    await blocker.query('rollback')
    expect(await read).toBeNull()
    await ended
  })
})
