import { createKyselyStorage, type KyselyStorage } from '@coji/durably-storage-kysely'
import { betterSqlite3 } from '@coji/durably-storage-kysely/better-sqlite3'
import { postgres } from '@coji/durably-storage-kysely/postgres'
import type { ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pass } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { LONG_PATIENCE_MS } from '../../../../test/pace'
import { createDatabase } from '../../../../test/postgres'
import { reportSuite } from '../../../../test/report'
import { scaled } from '../../../../test/scale'
import { buildPrograms, killed, spoken, startProgram } from './programs'

const TICKS = scaled({ quick: 40, full: 500 })
const KILLS = scaled({ quick: 3, full: 40 })
const EVERY_MS = 100
const HOUR_MS = 3_600_000

beforeAll(buildPrograms, LONG_PATIENCE_MS)

interface Opened {
  readonly location: string
  readonly storage: KyselyStorage
  close(): Promise<void>
}

const PLACES: readonly { readonly driver: string; open(): Promise<Opened> }[] = [
  {
    driver: 'better-sqlite3',
    async open() {
      const folder = mkdtempSync(join(tmpdir(), 'durably-ticks-'))
      const location = join(folder, 'test.db')
      const storage = createKyselyStorage({ dialect: betterSqlite3(location) })
      const remove = () => rmSync(folder, { recursive: true, force: true })
      return { location, storage, close: () => storage.close().then(remove) }
    },
  },
  {
    driver: 'postgres',
    async open() {
      const database = await createDatabase()
      const storage = createKyselyStorage({ dialect: postgres({ connectionString: database.url }) })
      return { location: database.url, storage, close: () => storage.close().then(() => database.drop()) }
    },
  },
]

describe.each(PLACES)('two processes on $driver', { timeout: LONG_PATIENCE_MS }, ({ driver, open }) => {
  it('that are killed and put to sleep fire each instant once, and deliver each message once', async () => {
    const { location, storage, close } = await open()
    await storage.migrate()
    // The clock of one of them is an hour ahead.
    const start = (offset: number) => startProgram('ticker', [driver, location, String(EVERY_MS), String(offset)])
    const started: ChildProcess[] = [start(0), start(HOUR_MS)]
    const said = await Promise.all(started.map(spoken))
    let kills = 0
    let naps = 0
    const ticks = async () => (await storage.counts({ jobNames: ['tick'] })).pending
    while ((await ticks()) < 2 * TICKS || kills < KILLS) {
      const place = (kills + naps) % 2
      const victim = started[place] as ChildProcess
      if ((kills + naps) % 3 === 0) {
        await killed(victim)
        kills += 1
        const next = start(place * HOUR_MS)
        started[place] = next
        said.push(await spoken(next))
      } else {
        victim.kill('SIGSTOP')
        await pass(3 * EVERY_MS)
        victim.kill('SIGCONT')
        naps += 1
      }
      await pass(2 * EVERY_MS)
    }
    while ((await storage.cluster.inbox.counts({})).waiting > 0) await pass(EVERY_MS)
    await Promise.all(started.map(killed))
    for (const schedule of await storage.cluster.schedules.list({})) {
      const runs = (await storage.getRuns({ jobNames: ['tick'] })).filter(
        ({ scheduleId }) => scheduleId === schedule.id,
      )
      const instants = runs.map(({ scheduledFor }) => Date.parse(scheduledFor ?? '')).sort((a, b) => a - b)
      const first = Date.parse(schedule.createdAt) + EVERY_MS
      expect(instants).toEqual(instants.map((_, index) => first + index * EVERY_MS))
      expect([instants.at(-1), schedule.missed]).toEqual([Date.parse(schedule.firedUntil), 0])
      expect(instants.at(-1)).toBeLessThan(Date.now() + EVERY_MS)
    }
    const told = (await storage.getRuns({ jobNames: ['told'] })).map(({ payload }) => payload)
    expect(new Set(told).size).toBe(told.length)
    const published = said.filter((word) => word !== 'started')
    expect(published.length).toBeGreaterThan(0)
    expect(told).toEqual(expect.arrayContaining(published.map((id) => JSON.stringify(id))))
    const messages = published.length
    reportSuite({ suite: 'instants with kills', on: driver, instants: await ticks(), messages, kills, naps })
    await close()
  })
})
