import { createDurably } from '@coji/durably-core'
import Database from 'better-sqlite3'
import { expect, it, onTestFinished } from 'vitest'
import { createKyselyStorage } from '../src'
import { betterSqlite3 } from '../src/drivers/better-sqlite3'
import { tempFile } from './databases'

/** Ended runs, the oldest first, that have kept so many events and steps. */
async function withRuns(...runs: readonly { readonly events: number; readonly steps: number }[]) {
  const { file, remove } = tempFile()
  const database = new Database(file)
  const storage = createKyselyStorage({ dialect: betterSqlite3({ database }) })
  onTestFinished(async () => {
    await storage.close()
    remove()
  })
  await storage.migrate()
  const insert = database.prepare(`insert into durably_runs (id, tenant, job_name, payload, status, available_at,
    created_at, updated_at, finished_at, last_event_sequence, current_step_index)
    values (@id, '', 'job', '1', 'completed', @at, @at, @at, @at, @events, @steps)`)
  for (const [index, run] of runs.entries()) {
    insert.run({ ...run, id: `run ${index}`, at: `2026-01-01T00:00:0${index}.000Z` })
  }
  const ids = async () => (await storage.getRuns({})).map(({ id }) => id).sort()
  return { storage, ids }
}

const ENDED = { statuses: ['completed'], limit: 200 } as const

it('removes few runs at once that have much, the oldest first, and all of them in the end', async () => {
  const much = [
    { events: 2000, steps: 0 },
    { events: 0, steps: 2000 },
    { events: 1000, steps: 1000 },
  ] as const
  const { storage, ids } = await withRuns(...much, { events: 9000, steps: 0 }, { events: 1, steps: 1 })
  expect(await storage.purge(ENDED)).toBe(2)
  expect(await ids()).toEqual(['run 2', 'run 3', 'run 4'])
  expect(await storage.purge(ENDED)).toBe(1)
  // Alone, since it is too much for any write.
  expect(await storage.purge(ENDED)).toBe(1)
  expect(await storage.purge(ENDED)).toBe(1)
  expect(await storage.purge(ENDED)).toBe(0)
})

it('says how many went, in however many writes', async () => {
  const { storage } = await withRuns(...Array.from({ length: 9 }, () => ({ events: 4000, steps: 10 })))
  const durably = createDurably({ storage, logger: null })
  expect(await durably.purge()).toBe(9)
})
