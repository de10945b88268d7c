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
import { randomFrom } from '../simulation/random'
import { chooseBlow } from './blow'
import { buildPrograms, killed, spoken, startProgram } from './programs'

const TICKS = scaled({ quick: 40, full: 500 })
const KILLS = scaled({ quick: 3, full: 40 })
const EVERY_MS = 100
const HOUR_MS = 3_600_000
const LOOK_MS = 20
/**
 * Which of them is hit, when and how; what they do meanwhile is up to the machine. On every change it is one that is over soon:
 * each lead that has to run out takes a quarter of a minute.
 */
const SEED = Number(process.env['DURABLY_SEED'] ?? scaled({ quick: 11, full: Math.floor(Math.random() * 2 ** 31) }))

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

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await pass(LOOK_MS)
}

/** A process that sleeps in the middle of a write keeps all others from writing. */
async function isLocked({ cluster }: KyselyStorage): Promise<boolean> {
  const writing = cluster.lead({ name: 'probe', workerId: 'test', ttlMs: 1 })
  return writing.then(
    () => false,
    (error: unknown) => Object(error).code === 'STORAGE_BUSY',
  )
}

describe.each(PLACES)(`two processes on $driver, seed ${SEED}`, { timeout: LONG_PATIENCE_MS }, ({ driver, open }) => {
  it('that are killed and put to sleep at random fire each instant once, and deliver each message once', async () => {
    const { location, storage, close } = await open()
    const random = randomFrom(SEED)
    await storage.migrate()
    // The clock of one of them is an hour ahead.
    const start = (offset: number) => startProgram('ticker', [driver, location, String(EVERY_MS), String(offset)])
    const started: ChildProcess[] = [start(0), start(HOUR_MS)]
    const said = await Promise.all(started.map(spoken))
    const blows = { kill: 0, nap: 0, sleep: 0 }
    const ticks = async () => (await storage.counts({ jobNames: ['tick'] })).pending
    while ((await ticks()) < 2 * TICKS || blows.kill < KILLS) {
      const { place, kind, napMs, instants } = chooseBlow(random, started.length)
      const victim = started[place] as ChildProcess
      const before = await ticks()
      blows[kind] += 1
      if (kind === 'kill') {
        await killed(victim)
        const next = start(place * HOUR_MS)
        started[place] = next
        said.push(await spoken(next))
      } else {
        victim.kill('SIGSTOP')
        if (kind === 'nap') await pass(napMs)
        else await until(async () => (await ticks()) > before + 2 || (await isLocked(storage)))
        victim.kill('SIGCONT')
      }
      await until(async () => (await ticks()) >= before + instants)
    }
    await until(async () => (await storage.cluster.inbox.counts({})).waiting === 0)
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
    const { kill: kills, nap: naps, sleep: sleeps } = blows
    const counts = { instants: await ticks(), messages, kills, naps, sleeps }
    reportSuite({ suite: 'instants with kills', on: driver, seed: SEED, ...counts })
    await close()
  })
})
