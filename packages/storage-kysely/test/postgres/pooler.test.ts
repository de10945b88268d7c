import { randomUUID } from 'node:crypto'
import { casesFor } from '@coji/durably-core/testing'
import { afterAll, beforeAll, it } from 'vitest'
import { describeWithPgBouncer, type PgBouncer, startPgBouncer } from '../../../../test/pgbouncer'
import { createDatabase, type PostgresDatabase } from '../../../../test/postgres'
import { reportSuite } from '../../../../test/report'
import { scaled } from '../../../../test/scale'
import { postgres } from '../../src/drivers/postgres'
import { contractSetup } from '../contract-setup'
import type { OpenDatabase } from '../databases'
import { recycling } from '../recycle'

/** Fewer than a storage has connections, and of all storages together. */
const SESSIONS = 6
const EVERY = scaled({ quick: 4, full: 1 })

const { cases } = casesFor([
  'events',
  'logs',
  'signals',
  'transaction',
  'watch',
  'limits',
  'forks',
  'debounce',
  'statistics',
  'archiving',
  'audit',
  'settings',
  'cluster',
])
const own = cases.filter((_, index) => index % EVERY === 0)

describeWithPgBouncer('the storage contract through PgBouncer', () => {
  let database: PostgresDatabase
  let pooler: PgBouncer

  beforeAll(async () => {
    database = await createDatabase()
    pooler = await startPgBouncer(database.url, { sessions: SESSIONS })
  })

  async function open(): Promise<OpenDatabase> {
    const location = pooler.through(database.url)
    const schema = `s_${randomUUID().replaceAll('-', '')}`
    const connect = () => postgres({ connectionString: location, schema, prepare: false, listen: false })
    return { location, schema, connect, dispose: async () => {} }
  }
  const setup = recycling(contractSetup({ open }).open)

  afterAll(async () => {
    reportSuite({ suite: 'storage contract through PgBouncer', cases: own.length })
    await setup.end()
    await pooler.end()
    await database.drop()
  })

  for (const { name, run } of own) it(name, () => run(setup))
})
