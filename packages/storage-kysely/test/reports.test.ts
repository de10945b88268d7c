import { createDurably } from '@coji/durably-core'
import { describe, expect, it, type TestContext } from 'vitest'
import { createKyselyStorage } from '../src'
import { MIGRATIONS } from '../src/migrations'
import { DATABASES, type TestDatabase } from './databases'

const NEWEST = { version: MIGRATIONS.length, minReader: Math.max(...MIGRATIONS.map(({ minReader }) => minReader)) }

async function open({ onTestFinished }: TestContext, database: TestDatabase) {
  const { connect, dispose } = await database.open()
  const storage = createKyselyStorage({ dialect: connect() })
  onTestFinished(async () => {
    await storage.close()
    await dispose()
  })
  return { storage, durably: createDurably({ storage, workerId: 'w1' }) }
}

/** Postgres once more, which takes seconds to start. */
const QUICK = DATABASES.filter(({ name }) => name !== 'pglite')

describe.each(QUICK)('$name', (database) => {
  it('tells how far the tables are, and makes none', async (context) => {
    const { storage } = await open(context, database)
    const none = { version: 0, minReader: 0, newest: NEWEST }
    expect(await storage.reportSchema()).toEqual(none)
    expect(await storage.reportSchema()).toEqual(none)
    await storage.migrate()
    expect(await storage.reportSchema()).toEqual({ ...NEWEST, newest: NEWEST })
  })

  it('tells who holds runs, and which run has waited longest', async (context) => {
    const { storage, durably } = await open(context, database)
    await storage.migrate()
    expect(await storage.reportWork()).toMatchObject({ oldestDue: null, holders: [] })

    await durably.trigger('later', {}, { delay: 3_600_000 })
    const first = await durably.trigger('waits', {})
    await durably.trigger('waits', {})
    const held = await durably.trigger('held', {})
    const claim = { claimToken: 'token', jobs: ['held'], limit: 1, leaseMs: 60_000, holdsSuspect: false, events: [] }
    const [claimed] = await storage.claim({ ...claim, workerId: 'w1' })

    const { at, oldestDue, holders } = await storage.reportWork()
    expect(oldestDue).toEqual({ id: first.id, jobName: 'waits', dueSince: first.availableAt })
    expect(claimed?.id).toBe(held.id)
    expect(holders).toEqual([
      { workerId: 'w1', runs: 1, heardAt: claimed?.heartbeatAt, leaseUntil: claimed?.leaseUntil },
    ])
    expect(Date.parse(at)).toBeGreaterThanOrEqual(Date.parse(first.createdAt))
  })
})
