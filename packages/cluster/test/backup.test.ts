import { type Lead, LEADER, type RunRecord } from '@coji/durably-core/storage'
import { newRun, runCommit } from '@coji/durably-core/testing'
import type { KyselyStorage } from '@coji/durably-storage-kysely'
import { sql } from 'kysely'
import { expect, it, onTestFinished } from 'vitest'
import { createInbox } from '../src/index'
import { BACKUP_PLACES, type BackedUp } from './backup-places'
import {
  deliveries,
  firedInstants,
  gate,
  instantsWithoutGap,
  LANES,
  LASTING,
  load,
  openCourier,
  openWorld,
  publish,
  STEPS,
  type World,
} from './backup-worlds'

const LATE = 1_000_000
/** A job that no worker here knows. */
const LATER = 'later'
const COMPLETE = { outcome: { kind: 'complete', output: null, events: [], eventsIfCancelled: [] } } as const

const jobRuns = (storage: KyselyStorage) => storage.getRuns({ jobNames: ['job'] })

async function recordedSteps(storage: KyselyStorage, { id, payload }: RunRecord): Promise<readonly string[]> {
  const steps = await storage.getSteps(id)
  return steps.filter(({ status }) => status === 'completed').map(({ name }) => `${payload} ${name}`)
}

/** Runs that somebody had in hand, with steps still to do. */
async function heldAmidSteps(storage: KyselyStorage, runs: readonly RunRecord[]): Promise<readonly RunRecord[]> {
  const held: RunRecord[] = []
  for (const run of runs) {
    const isAmid = run.status === 'running' && (await recordedSteps(storage, run)).length < STEPS.length
    if (isAmid) held.push(run)
  }
  return held
}

/** So much later that all leases of that moment are over. */
async function age({ db }: KyselyStorage): Promise<void> {
  const past = '2020-01-01T00:00:00.000Z'
  await sql`update durably_runs set lease_until = ${past} where status = 'running'`.execute(db)
  await sql`update durably_leaders set lead_until = ${past}`.execute(db)
}

/** What a worker of before sends, which is led to the restored database. */
async function writesOfThePast(storage: KyselyStorage, held: readonly RunRecord[]) {
  const commits = held.map(({ id: runId, leaseEpoch: epoch, claimToken: token, leaderEpoch, commitNo }) => {
    return runCommit({ lease: { runId, epoch, token: token ?? '', leaderEpoch }, commitNo: commitNo + 1 }, COMPLETE)
  })
  const renewals = commits.map(({ lease }) => lease)
  return [...(await storage.commit(commits)), ...(await storage.renew(renewals, 1000))].map(({ kept }) => kept)
}

/** While others have the runs in hand, by leases that came later: it is these that refuse, not the end of the run. */
async function expectPastIsRefused(storage: KyselyStorage, held: readonly RunRecord[]): Promise<void> {
  const holders = async () => {
    const runs = await Promise.all(held.map(({ id }) => storage.getRun(id)))
    return runs.map((run) => [run?.status, run?.ownerId, run?.leaseEpoch, run?.commitNo])
  }
  const before = await holders()
  expect(before.map(([status, ownerId]) => [status, ownerId])).toEqual(held.map(() => ['running', 'restored']))
  expect(await writesOfThePast(storage, held)).toEqual(held.flatMap(() => [false, false]))
  expect(await holders()).toEqual(before)
}

/** Of a run that waits in the backup, whoever it is that claims it. */
async function claimLater(storage: KyselyStorage, claimToken: string): Promise<RunRecord> {
  const by = { workerId: claimToken, claimToken, leaseMs: 60_000, holdsSuspect: false }
  const [run] = await storage.claim({ ...by, jobs: [LATER], limit: 1, events: [] })
  if (run === undefined) throw new Error('It should wait.')
  return run
}

/** It has the number of the one that was granted before the restore: the token tells them apart. */
async function expectLeaseSinceIsRefused(storage: KyselyStorage, { claimedSince }: Lived): Promise<void> {
  expect(await storage.getRun(claimedSince.id)).toMatchObject({ status: 'pending', leaseEpoch: 0 })
  expect(await writesOfThePast(storage, [claimedSince])).toEqual([false, false])
  expect((await claimLater(storage, 'anew')).leaseEpoch).toBe(claimedSince.leaseEpoch)
  expect(await writesOfThePast(storage, [claimedSince])).toEqual([false, false])
}

/** What a backup of it has, what it has not, and who led it at its end. */
interface Lived {
  /** It waits in the backup, and was claimed afterwards. */
  readonly claimedSince: RunRecord
  readonly lastingId: string
  readonly lateId: string
  readonly lostInstant: number
  readonly lead: Lead
}

async function liveThroughBackup(backedUp: BackedUp): Promise<Lived> {
  const end = gate()
  const live = openWorld(backedUp.live(), 'live', (step, n) => (n === LASTING && step === 'c' ? end.opened : undefined))
  await live.storage.migrate()
  live.durably.start()
  const { id: lastingId } = await live.handle.trigger(LASTING)
  await expect.poll(() => live.storage.getSteps(lastingId)).toHaveLength(2)
  const courier = openCourier(backedUp.live())
  await publish(live, 'delivered before')
  await courier.drain()
  await publish(live, 'delivered after')
  await live.storage.enqueue([newRun({ jobName: LATER })])
  await backUpUnderLoad(backedUp, live)
  const claimedSince = await claimLater(live.storage, 'since')
  const lostInstant = await nextInstant(live)
  await publish(live, 'published after')
  await courier.drain()
  expect(await deliveries(live.storage)).toEqual(['delivered after', 'delivered before', 'published after'])
  const { id: lateId } = await live.handle.trigger(LATE, { idempotencyKey: 'late' })
  await live.handle.wait(lateId)
  const lead = { ...(await live.storage.cluster.getLead(LEADER)), name: LEADER } as Lead
  end.open()
  await live.durably.stop()
  return { claimedSince, lastingId, lateId, lostInstant, lead }
}

async function backUpUnderLoad(backedUp: BackedUp, live: World): Promise<void> {
  const runs = load(live)
  await expect.poll(runs.done).toBeGreaterThan(LANES)
  await expect.poll(() => firedInstants(live.storage)).not.toEqual([])
  const before = runs.done()
  await backedUp.backUp()
  expect(runs.done()).toBeGreaterThan(before)
  await runs.end()
}

/** One that fires from now on. */
async function nextInstant({ storage }: World): Promise<number> {
  const before = await firedInstants(storage)
  await expect.poll(() => firedInstants(storage)).not.toHaveLength(before.length)
  return (await firedInstants(storage)).at(-1) ?? Number.NaN
}

async function expectSchedulesAndMessagesGoOn({ storage }: World, lostInstant: number): Promise<void> {
  await expect.poll(() => firedInstants(storage)).toContain(lostInstant)
  const instants = await firedInstants(storage)
  expect(instants).toEqual(await instantsWithoutGap(storage, instants.length))
  await expect.poll(() => storage.cluster.inbox.counts({})).toMatchObject({ waiting: 0 })
  expect(await deliveries(storage)).toEqual(['delivered after', 'delivered before'])
}

async function expectLateIsNew({ storage, handle }: World, { lateId, lead }: Lived): Promise<void> {
  const again = await handle.trigger(LATE, { idempotencyKey: 'late' })
  expect(again.id).not.toBe(lateId)
  const { version } = (await storage.getRun(again.id)) ?? { version: 0 }
  const byTheOldLeader = [{ runId: again.id, version, workerId: 'live', events: [] }]
  expect(await storage.cluster.placement.assign(lead, byTheOldLeader)).toEqual([false])
}

it.each(BACKUP_PLACES)(
  'what is restored of $driver, under load, takes no write of the past and runs nothing again that it has recorded',
  async (place) => {
    const backedUp = await place.open()
    onTestFinished(() => backedUp.end())
    const lived = await liveThroughBackup(backedUp)

    const begun: string[] = []
    const { opened, open } = gate()
    const restored = openWorld((await backedUp.restore())(), 'restored', async (step, n) => {
      begun.push(`${n} ${step}`)
      await opened
    })
    createInbox(restored.durably, { pollingInterval: 20 })
    const { storage } = restored
    const found = await jobRuns(storage)
    const done = (await Promise.all(found.map((run) => recordedSteps(storage, run)))).flat()
    const held = await heldAmidSteps(storage, found)
    expect(held.map(({ id }) => id)).toContain(lived.lastingId)
    // What came after the backup is lost.
    expect(found.map(({ id }) => id)).not.toContain(lived.lateId)
    expect(await firedInstants(storage)).not.toContain(lived.lostInstant)
    expect(await deliveries(storage)).toEqual(['delivered before'])

    await expectLeaseSinceIsRefused(storage, lived)
    await age(storage)
    restored.durably.start()
    const isHeldAnew = ({ payload }: RunRecord) => begun.some((step) => step.startsWith(`${payload} `))
    await expect.poll(() => held.every(isHeldAnew)).toBe(true)
    await expectPastIsRefused(storage, held)
    open()
    for (const { id } of found) await restored.handle.wait(id)
    expect(begun.filter((step) => done.includes(step))).toEqual([])
    expect(begun).toContain(`${LASTING} c`)
    const counts = await storage.counts({ jobNames: ['job'] })
    expect(counts).toMatchObject({ completed: found.length, failed: 0 })
    await expectSchedulesAndMessagesGoOn(restored, lived.lostInstant)
    await expectLateIsNew(restored, lived)
  },
)
