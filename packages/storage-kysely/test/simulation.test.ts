import type { Storage } from '@coji/durably-core/storage'
import { describeFailure, explore } from '@coji/durably-core/simulation'
import Database from 'better-sqlite3'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { reportSuite } from '../../../test/report'
import { LONG_PATIENCE_MS } from '../../../test/pace'
import { scaled } from '../../../test/scale'
import { createKyselyStorage, type KyselyStorage } from '../src'
import { betterSqlite3 } from '../src/drivers/better-sqlite3'
import { tempFile } from './databases'

const SEEDS = scaled({ quick: 15, full: 3000 })

const { file, remove } = tempFile()
const database = new Database(file)
let now = () => Date.now()
let storage: KyselyStorage

beforeAll(async () => {
  // The one function the storage tells the time with: what SQLite computes, from the time of the simulation.
  database.function('strftime', { varargs: true }, (_format: unknown, instant: unknown, shift: unknown = '') => {
    const base = instant === 'now' ? now() : Date.parse(String(instant))
    return new Date(Math.round(base + Number.parseFloat(`0${shift}`.replace(/^0([+-])/, '$1')) * 1000)).toISOString()
  })
  storage = createKyselyStorage({ dialect: betterSqlite3({ database }), durability: 'fast' })
  await storage.migrate()
})

afterAll(async () => {
  await storage.close()
  remove()
})

/** The same database for every seed, emptied. */
function emptied(clock: () => number): Storage {
  now = clock
  const tables = database.prepare("select name from sqlite_master where type = 'table' and name like 'durably_%'").all()
  for (const { name } of tables as { name: string }[]) {
    if (!name.endsWith('schema_versions')) database.exec(`delete from "${name}"`)
  }
  return { ...storage, migrate: async () => {}, close: async () => {} }
}

it('finds no violation on SQLite', { timeout: LONG_PATIENCE_MS }, async () => {
  const { failures, seeds, operations } = await explore({
    firstSeed: 1,
    createStorage: emptied,
    readsClockAsItIs: true,
    goesOn: (played) => played < SEEDS,
  })
  reportSuite({ suite: 'simulation on SQLite', seeds, operations })
  expect(failures.map(describeFailure)).toEqual([])
})
