import Database from 'better-sqlite3'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { betterSqlite3 } from '../src/drivers/better-sqlite3'
import { FENCES } from '../src/statement/fences'
import { createKyselyStorageWith, type KyselyStorage } from '../src/kysely-storage'
import { claim, claimWithin, COMPLETE, leaseOf, newCommit, newRun, RECOVER_ALL, startRun } from './builders'

const HOUR_MS = 3_600_000

let storage: KyselyStorage
/** Of the machine, as its clock shows it, and as it passes. */
let wallMs: number
let passedMs: number

beforeEach(async () => {
  wallMs = Date.UTC(2026, 10, 1, 12)
  passedMs = 0
  const database = new Database(':memory:')
  // The one function the storage tells the time with.
  database.function('strftime', { varargs: true }, (_format: unknown, instant: unknown, shift: unknown = '') => {
    const base = instant === 'now' ? wallMs : Date.parse(String(instant))
    return new Date(Math.round(base + Number.parseFloat(`0${shift}`.replace(/^0([+-])/, '$1')) * 1000)).toISOString()
  })
  storage = createKyselyStorageWith({
    dialect: betterSqlite3({ database }),
    fences: FENCES,
    monotonic: () => passedMs,
  })
  await storage.migrate()
})

afterEach(() => storage.close())

function pass(ms: number): void {
  wallMs += ms
  passedMs += ms
}

const idsOf = (runs: readonly { id: string }[]) => runs.map(({ id }) => id)

it('runs that are to start at once are due, new ones and those from before', async () => {
  const old = newRun()
  const later = newRun({ start: { afterMs: 1000 } })
  await storage.enqueue([old, later])
  wallMs -= HOUR_MS
  expect(await storage.nextDue(['job'])).toMatchObject({ runInMs: 0 })
  expect(await storage.nextDue(['other'])).toMatchObject({ unknownJobs: ['job'] })
  const fresh = newRun()
  await storage.enqueue([fresh])
  expect(idsOf(await claim(storage, 10)).sort()).toEqual([old.id, fresh.id].sort())
  // What is to wait waits by the clock.
  expect(await storage.nextDue(['job'])).toMatchObject({ runInMs: HOUR_MS + 1000 })
  pass(HOUR_MS + 1000)
  expect(idsOf(await claim(storage, 10))).toEqual([later.id])
})

it('a rate counts what has begun in the future as begun now', async () => {
  const rateLimit = { max: 2, per: 1000 }
  await storage.enqueue(Array.from({ length: 4 }, () => newRun()))
  expect(await claimWithin(storage, { rateLimit })).toMatchObject({ runs: [{}, {}], opensInMs: 1000 })
  wallMs -= HOUR_MS
  expect(await claimWithin(storage, { rateLimit })).toMatchObject({ runs: [], opensInMs: 1000 })
  pass(999)
  expect(await claimWithin(storage, { rateLimit })).toMatchObject({ runs: [], opensInMs: 1 })
  pass(1)
  expect((await claimWithin(storage, { rateLimit })).runs).toHaveLength(2)
})

it('a run goes on at once when it was released or woken', async () => {
  const run = await startRun(storage)
  wallMs -= HOUR_MS
  const release = { kind: 'release', events: [], eventsIfCancelled: [] } as const
  await storage.commit([newCommit(run, { outcome: release })])
  const [again] = await claim(storage)
  expect(again).toMatchObject({ id: run.id })
})

it('a run that rests between looks at its children is woken by the next one', async () => {
  const parent = await startRun(storage)
  const suspend = { kind: 'suspend', steps: ['all'], wakesSeen: 0, wakesWanted: 9, restMs: 1000 } as const
  await storage.commit([newCommit(parent, { outcome: { ...suspend, events: [], eventsIfCancelled: [] } })])
  wallMs -= HOUR_MS
  const child = await startRun(storage, { parentRunId: parent.id })
  await storage.commit([newCommit(child, { outcome: COMPLETE })])
  expect(idsOf(await claim(storage))).toEqual([parent.id])
})

it('a lease that nobody renews runs out after as long as it was given', async () => {
  const run = await startRun(storage)
  wallMs -= HOUR_MS
  expect(await storage.recover(RECOVER_ALL)).toEqual([])
  pass(59_000)
  expect(await storage.recover(RECOVER_ALL)).toEqual([])
  pass(1000)
  expect(await storage.recover(RECOVER_ALL)).toMatchObject([{ id: run.id, status: 'pending', crashCount: 1 }])
  expect(idsOf(await claim(storage))).toEqual([run.id])
})

it('a lease runs out no later than after as long as it was given', async () => {
  const run = await startRun(storage)
  expect(await storage.nextDue([])).toMatchObject({ leaseInMs: 60_000 })
  wallMs -= HOUR_MS
  expect(await storage.nextDue([])).toMatchObject({ leaseInMs: 60_000 })
  pass(20_000)
  const other = await startRun(storage)
  await storage.renew([leaseOf(other)], 50_000)
  expect(await storage.nextDue([])).toMatchObject({ leaseInMs: 50_000 })
  await storage.renew([leaseOf(run)], 40_000)
  expect(await storage.nextDue([])).toMatchObject({ leaseInMs: 40_000 })
})

it('a lease that its holder renews stays, by the new clock', async () => {
  const run = await startRun(storage)
  wallMs -= HOUR_MS
  expect(await storage.recover(RECOVER_ALL)).toEqual([])
  pass(30_000)
  await storage.renew([leaseOf(run)], 60_000)
  for (const seconds of [0, 20, 39]) {
    pass(seconds * 1000)
    expect(await storage.recover(RECOVER_ALL)).toEqual([])
  }
  pass(2000)
  expect(await storage.recover(RECOVER_ALL)).toMatchObject([{ id: run.id }])
})

it('a lease that is renewed while the clock goes back again and again stays', async () => {
  const run = await startRun(storage)
  for (let round = 0; round < 5; round++) {
    wallMs -= HOUR_MS
    expect(await storage.recover(RECOVER_ALL)).toEqual([])
    pass(40_000)
    expect(await storage.recover(RECOVER_ALL)).toEqual([])
    await storage.renew([leaseOf(run)], 60_000)
  }
})
