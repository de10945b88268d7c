import { createClient } from '@libsql/client'
import Database from 'better-sqlite3'
import { SqliteDialect } from 'kysely'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createKyselyStorage } from '../src'
import { betterSqlite3 } from '../src/drivers/better-sqlite3'
import { libsql } from '../src/drivers/libsql'
import { claim, COMPLETE, newCommit, newRun, newStep } from './builders'
import { tempFile } from './databases'

let temp: ReturnType<typeof tempFile>

beforeEach(() => {
  temp = tempFile()
})

afterEach(() => temp.remove())

function safeIntegers(): Database.Database {
  const database = new Database(temp.file)
  database.defaultSafeIntegers()
  return database
}

describe('a connection that hands integers out as BigInt', () => {
  it.each([
    ['libsql', () => libsql({ client: createClient({ url: `file:${temp.file}`, intMode: 'bigint' }) })],
    ['better-sqlite3', () => betterSqlite3({ database: safeIntegers() })],
    ['a bare dialect', () => new SqliteDialect({ database: safeIntegers() })],
  ])('works: %s', async (_name, dialect) => {
    const storage = createKyselyStorage({ dialect: dialect() })
    await storage.migrate()
    const [answer] = await storage.enqueue([newRun()])
    expect(answer?.run).toMatchObject({ priority: 0, attempt: 1, version: 1 })
    const [run] = await claim(storage)
    if (run === undefined) throw new Error('Nothing was claimed.')
    const [kept] = await storage.commit([newCommit(run, { steps: [newStep()], outcome: COMPLETE })])
    expect(kept).toMatchObject({ kept: true, status: 'completed', seq: 0, wakes: 0 })
    await storage.close()
  })
})

describe('an application with a raw transaction open on the database it gave', () => {
  it('does not take what was acknowledged along when it rolls back', async () => {
    const database = new Database(temp.file)
    const storage = createKyselyStorage({ dialect: betterSqlite3({ database }) })
    await storage.migrate()
    database.exec('begin immediate')
    const enqueued = storage.enqueue([newRun()])
    await Promise.resolve()
    database.exec('rollback')
    const [answer] = await enqueued
    expect(await storage.getRun(answer?.run.id ?? '')).not.toBeNull()
    await storage.close()
  })
})
