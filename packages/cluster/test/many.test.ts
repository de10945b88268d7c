import { createDurably } from '@coji/durably-core'
import type { Overlap } from '@coji/durably-core/storage'
import { newRun } from '@coji/durably-core/testing'
import { createKyselyStorage, type KyselyStorage } from '@coji/durably-storage-kysely'
import { betterSqlite3 } from '@coji/durably-storage-kysely/better-sqlite3'
import { postgres } from '@coji/durably-storage-kysely/postgres'
import { sql } from 'kysely'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { LONG_PATIENCE_MS } from '../../../test/pace'
import { createDatabase } from '../../../test/postgres'
import { reportSuite } from '../../../test/report'
import { SCALE, scaled } from '../../../test/scale'
import { createCluster, createInbox, createScheduler } from '../src/index'

const SCHEDULES = scaled({ quick: 1200, full: 100_000 })
const MESSAGES = scaled({ quick: 600, full: 10_000 })
const RUNS_OF_A_TENANT = scaled({ quick: 1000, full: 10_000 })
const AT_ONCE = 1000
const LONGEST_MS = 30_000

interface Place {
  readonly name: string
  open(): Promise<{ readonly storage: KyselyStorage; close(): Promise<void> }>
}

const PLACES: readonly Place[] = [
  {
    name: 'better-sqlite3',
    async open() {
      const folder = mkdtempSync(join(tmpdir(), 'durably-many-'))
      const storage = createKyselyStorage({ dialect: betterSqlite3(join(folder, 'test.db')) })
      const remove = () => rmSync(folder, { recursive: true, force: true })
      return { storage, close: () => storage.close().then(remove) }
    },
  },
  {
    name: 'postgres',
    async open() {
      const database = await createDatabase()
      const storage = createKyselyStorage({ dialect: postgres({ connectionString: database.url }) })
      return { storage, close: () => storage.close().then(() => database.drop()) }
    },
  },
]

async function timed(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now()
  await work()
  return Math.round(performance.now() - begun)
}

const THE_LAST_MINUTE = 0
const THE_MINUTE_BEFORE = 60

/** All of them get their instant within the minute that was over so many seconds ago. */
async function setDue({ db }: KyselyStorage, place: string, secondsAgo: number): Promise<void> {
  const due =
    place === 'postgres'
      ? sql`date_trunc('milliseconds', now()) - floor(${secondsAgo}::int + random() * 60) * interval '1 second'`
      : sql`strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-' || (${secondsAgo} + abs(random()) % 60) || ' seconds')`
  await sql`update durably_schedules set due_at = ${due}`.execute(db)
  await sql`update durably_schedules set next_at = due_at`.execute(db)
}

async function schedulesWithRuns({ db }: KyselyStorage): Promise<number> {
  const { rows } = await sql<{ ids: number }>`select count(distinct schedule_id) as ids from durably_runs`.execute(db)
  return Number(rows[0]?.ids)
}

describe.each(PLACES)('many, on $name', { timeout: LONG_PATIENCE_MS }, ({ name, open }) => {
  it('schedules that are due in one minute fire once each', async () => {
    const { storage, schedules, total, close } = await planned('allow')
    const plannedMs = await timed(() => schedules.tick())
    await setDue(storage, name, THE_LAST_MINUTE)
    const firedMs = await timed(() => schedules.tick())
    reportSuite({ suite: 'schedules due in one minute', on: name, schedules: total, plannedMs, firedMs })
    // A machine that has other things to do is no defect of fewer schedules.
    if (SCALE === 'full') expect(firedMs).toBeLessThan(LONGEST_MS)
    expect((await storage.counts({})).pending).toBe(total)
    expect(await schedulesWithRuns(storage)).toBe(total)
    expect(await schedules.tick()).toEqual({ fired: 0 })
    await close()
  })

  it('schedules that are due in one minute have their runs of before make way', async () => {
    const { storage, schedules, total, close } = await planned('cancel')
    await schedules.tick()
    await setDue(storage, name, THE_MINUTE_BEFORE)
    await schedules.tick()
    await setDue(storage, name, THE_LAST_MINUTE)
    const firedMs = await timed(() => schedules.tick())
    // As many runs end as begin: it takes several times as long, and has no bound.
    reportSuite({ suite: 'schedules that have runs make way', on: name, schedules: total, firedMs })
    expect(await storage.counts({})).toMatchObject({ pending: total, cancelled: total })
    expect(await schedulesWithRuns(storage)).toBe(total)
    await close()
  })

  /** Schedules that have not been looked at yet, and do not fire by the clock while this goes on. */
  async function planned(overlap: Overlap) {
    const { storage, close } = await open()
    await storage.migrate()
    const durably = createDurably({ storage, logger: null })
    const schedules = createScheduler(durably)
    const { drafts } = durably
    const run = drafts.draftEncoded('report', '{}')
    const hour = (new Date().getUTCHours() + 12) % 24
    for (let first = 0; first < SCHEDULES; first += AT_ONCE) {
      await storage.cluster.schedules.create(
        Array.from({ length: AT_ONCE }, (_, index) => {
          const timing = { kind: 'cron', cron: `${(first + index) % 60} ${hour} * * *`, zone: 'UTC' }
          const definition = { timing, start: null, end: null, missed: 'latest', jitterMs: 0, run }
          const content = { jobName: 'report', payload: '{}', definition: JSON.stringify(definition) }
          const own = { id: drafts.environment.createId(), tenant: '', name: `s${first + index}`, source: null }
          return { ...own, ...content, overlap }
        }),
      )
    }
    return { storage, schedules, total: Math.ceil(SCHEDULES / AT_ONCE) * AT_ONCE, close }
  }

  it('runs of one tenant do not keep the three of another one waiting', async () => {
    const { storage, close } = await open()
    await storage.migrate()
    const durably = createDurably({ storage, logger: null })
    const cluster = createCluster(durably)
    const enqueue = (tenant: string, length: number) =>
      storage.enqueue(Array.from({ length }, () => newRun({ jobName: 'placed', tenant })))
    for (let n = 0; n < RUNS_OF_A_TENANT; n += AT_ONCE) await enqueue('many', AT_ONCE)
    await enqueue('few', 3)
    const worker = { workerId: 'w', presence: 'active', labels: {}, codeVersion: null, ttlMs: LONGEST_MS } as const
    await storage.cluster.placement.beat({ ...worker, placedJobs: ['placed'], capacity: 6 })
    const placedMs = await timed(() => cluster.lead())
    reportSuite({ suite: 'tenants with many runs and few', on: name, runs: RUNS_OF_A_TENANT, placedMs })
    const assigned = await storage.getRuns({ statuses: ['assigned'] })
    expect(assigned.map(({ tenant }) => tenant).sort()).toEqual([...Array(3).fill('few'), ...Array(3).fill('many')])
    await close()
  })

  it('messages are delivered once each', async () => {
    const { storage, close } = await open()
    await storage.migrate()
    const durably = createDurably({ storage, logger: null })
    const inbox = createInbox(durably)
    await storage.cluster.inbox.subscribe(
      ['a'],
      [{ jobName: 'a', type: 'x', definition: '{"where":null,"gathering":null}' }],
    )
    const published = await timed(async () => {
      for (let n = 0; n < MESSAGES; n += 100) {
        await Promise.all(Array.from({ length: 100 }, (_, k) => durably.publish({ type: 'x', payload: n + k })))
      }
    })
    const enqueued = await timed(async () => {
      for (let n = 0; n < MESSAGES; n += 100) {
        await Promise.all(Array.from({ length: 100 }, (_, k) => durably.trigger('b', n + k)))
      }
    })
    const drained = await timed(() => inbox.drain())
    const rate = (ms: number) => Math.round((MESSAGES / ms) * 1000)
    const rates = { enqueued: rate(enqueued), published: rate(published), drained: rate(drained) }
    reportSuite({ suite: 'messages a second', on: name, messages: MESSAGES, ...rates })
    expect((await storage.counts({ jobNames: ['a'] })).pending).toBe(MESSAGES)
    const payloads = (await durably.getRuns({ jobName: 'a' })).map(({ payload }) => payload)
    expect(new Set(payloads).size).toBe(MESSAGES)
    await close()
  })
})
