import { setTimeout as pass } from 'node:timers/promises'
import type { Page } from 'playwright'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { paced } from '../../../../test/pace'
import { audit, countEnded, inTab, untilInTab } from './audit'
import { openBrowser, type Browser } from './tabs'
import { itInFullLane } from '../../../../test/full-lane'

/** Many heartbeats long: a tab that is awake keeps its lease on a machine that is busy with other things. */
const LEASE_MS = paced(8000)
const HEARTBEAT_MS = 1000

let browser: Browser

beforeAll(async () => {
  browser = await openBrowser({ isWhole: true })
  return () => browser.close()
})

afterEach(() => browser.closeTabs())

interface Frozen {
  readonly one: Page
  readonly two: Page
  /** Of the first tab. */
  readonly name: string
}

/** Two tabs, the first of them frozen in the third step of a run, with nothing of it on the way to the file. */
async function openAndFreeze(): Promise<Frozen> {
  for (let tries = 1; ; tries++) {
    const settings = { file: `frozen-${tries}.sqlite3`, leaseMs: LEASE_MS, heartbeatMs: HEARTBEAT_MS, deaf: true }
    const one = await browser.openLeader(settings)
    const two = await browser.open(settings)
    const name = await inTab(one, (tab) => tab.name)
    await inTab(one, (tab) => {
      tab.halt.at = 3
    })
    await inTab(two, (tab) => tab.jobs.work.trigger({ steps: 6, ms: 0 }))
    await expect.poll(() => inTab(two, (tab) => tab.readWitness().length)).toBe(3)
    await browser.freeze(one)
    if (await inTab(two, (tab) => tab.canWrite())) return { one, two, name }
    // A renewal was on its way just then, and the file is held: another test's case.
    await browser.closeTabs()
  }
}

describe('a leader', () => {
  it('that stops without a word is followed after one lease, and writes nothing when it goes on', async () => {
    const { one, two, name } = await openAndFreeze()
    await untilInTab(two, (tab) => tab.isLeader())
    const [silenceMs = 0] = await inTab(two, (tab) => tab.silences)
    await untilInTab(two, (tab) => tab.heard.some((line) => line.startsWith('run:complete')))
    const before = await audit(two, name)

    await browser.thaw(one)
    await untilInTab(one, (tab) => tab.tenures.at(-1) === false && tab.durably.health().worker === 'stopped')

    expect(silenceMs).toBeGreaterThanOrEqual(LEASE_MS - HEARTBEAT_MS)
    expect(before).toMatchObject({ statuses: { completed: 1 }, recordedSteps: 6, bodies: 7, repeated: [] })
    expect(before.recordedBy[name]).toBe(2)
    expect(await audit(two, name)).toEqual(before)
    expect([await inTab(one, (tab) => tab.tenures), await inTab(two, (tab) => tab.tenures)]).toEqual([
      [true, false],
      [true],
    ])

    await two.close()
    await untilInTab(one, (tab) => tab.isLeader())
    expect(await inTab(one, (tab) => tab.jobs.work.triggerAndWait({ steps: 1, ms: 0 }))).toMatchObject({ output: 1 })
  })

  itInFullLane('that is hidden beats on, slower, and stays the leader', async () => {
    const settings = { file: 'hidden.sqlite3', leaseMs: LEASE_MS, heartbeatMs: 500 }
    const one = await browser.openLeader(settings)
    await browser.cover(one)
    const two = await browser.open(settings)
    expect(await inTab(one, () => document.visibilityState)).toBe('hidden')
    expect(await inTab(two, () => document.visibilityState)).toBe('visible')
    await inTab(two, (tab, ms) => tab.jobs.work.triggerAndWait({ steps: 2, ms }), LEASE_MS * 0.7)
    expect(await audit(two)).toMatchObject({ statuses: { completed: 1 }, bodies: 2, repeated: [] })
    expect([await inTab(one, (tab) => tab.tenures), await inTab(two, (tab) => tab.tenures)]).toEqual([[true], []])
  })
})

describe('a follower', () => {
  itInFullLane('that is frozen lets others go first, and takes part again when it thaws', async () => {
    const settings = { file: 'queue.sqlite3' }
    const one = await browser.openLeader(settings)
    const two = await browser.open(settings)
    const three = await browser.open(settings)
    await browser.freeze(two)
    await one.close()
    await untilInTab(three, (tab) => tab.isLeader() && tab.durably.health().worker === 'running')
    await browser.thaw(two)
    expect(await inTab(two, (tab) => tab.tenures)).toEqual([])
    await three.close()
    await untilInTab(two, (tab) => tab.isLeader())
    expect(await inTab(two, (tab) => tab.jobs.work.triggerAndWait({ steps: 1, ms: 0 }))).toMatchObject({ output: 1 })
  })
})

/** Freezes a tab with nothing of it on the way to the file, so that `other` can write. */
async function freezeOffTheFile(page: Page, other: Page): Promise<void> {
  await browser.freeze(page)
  while (!(await inTab(other, (tab) => tab.canWrite()))) {
    await browser.thaw(page)
    await expect.poll(() => inTab(other, (tab) => tab.canWrite())).toBe(true)
    await browser.freeze(page)
  }
}

/** Triggers two runs in long steps, one of them of a step that may begin only once. */
async function startLingering(page: Page): Promise<string[]> {
  const ids = await inTab(page, async ({ jobs }) => [
    (await jobs.linger.trigger({ once: false })).id,
    (await jobs.linger.trigger({ once: true })).id,
  ])
  await expect.poll(() => inTab(page, (tab) => tab.readWitness().length)).toBe(2)
  return ids
}

function leasesOf(page: Page, ids: readonly string[]): Promise<string[]> {
  return inTab(
    page,
    async ({ durably }, runs) => {
      const found = await Promise.all(runs.map((id) => durably.getRun(id)))
      return found.map((run) => run?.leaseUntil ?? '')
    },
    ids,
  )
}

/** Resolves when the leases of these runs end later than they do now, or did `before`. */
async function untilRenewed(page: Page, ids: readonly string[], before?: readonly string[]): Promise<void> {
  const known = before ?? (await leasesOf(page, ids))
  const areRenewed = async () => (await leasesOf(page, ids)).every((lease, index) => lease > (known[index] ?? ''))
  await expect.poll(areRenewed).toBe(true)
}

describe('a tab that was frozen and whose runs nobody took', () => {
  itInFullLane('goes on with the same executions, after two heartbeats as after more than its lease', async () => {
    // A page that is awake has to renew within its lease, on whatever machine: only what has to run out is short.
    const leaseMs = LEASE_MS * 2
    const openOne = async (settings: { readonly file: string; readonly leaseMs?: number }) => {
      const page = await browser.open({ ...settings, heartbeatMs: 500 })
      return { page, ids: await startLingering(page) }
    }
    const short = await openOne({ file: 'short.sqlite3' })
    const long = await openOne({ file: 'long.sqlite3', leaseMs })
    for (const { page } of [short, long]) await browser.freeze(page)
    await pass(1500)
    await browser.thaw(short.page)
    await pass(leaseMs)
    await browser.thaw(long.page)

    for (const { page, ids } of [short, long]) {
      // What a thaw sets off has happened when the heartbeats go on as ever.
      for (let beats = 0; beats < 2; beats++) await untilRenewed(page, ids)
      expect(await inTab(page, (tab) => [tab.lingering.aborts, tab.durably.health().active.length])).toEqual([[], 2])
      await inTab(page, (tab) => tab.lingering.end())
      await expect.poll(() => countEnded(page)).toBe(2)
      expect((await inTab(page, (tab) => tab.heard)).sort()).toEqual(
        ids.flatMap((id) => [`run:complete ${id}`, `run:trigger ${id}`]).sort(),
      )
      expect(await audit(page)).toMatchObject({ statuses: { completed: 2 }, recordedSteps: 2, bodies: 2, repeated: [] })
    }
  })

  it('renews at once, and ends at once what was taken after all', async () => {
    const file = 'wake.sqlite3'
    // The next heartbeat is too far away to do any of it.
    const one = await browser.open({ file, heartbeatMs: 12_000 })
    const two = await browser.open({ file, plugin: false })
    await inTab(two, (tab) => tab.durably.stop())
    const ids = await startLingering(one)
    const before = await leasesOf(two, ids)
    await browser.freeze(one)
    await browser.thaw(one)
    await untilRenewed(two, ids, before)
    expect(await inTab(one, (tab) => tab.lingering.aborts)).toEqual([])

    const workerId = await inTab(one, (tab) => tab.durably.health().workerId)
    await freezeOffTheFile(one, two)
    await inTab(two, (tab, dead) => tab.durably.recover({ workerId: dead }), workerId)
    await browser.thaw(one)
    await untilInTab(one, (tab) => tab.lingering.aborts.length === 2)
    const lost = await inTab(one, (tab) => tab.heard.filter((line) => line.startsWith('worker:lease-lost')))
    expect(lost.sort()).toEqual(ids.map((id) => `worker:lease-lost ${id}`).sort())
  })
})

describe('a tab that stops without a word and holds the file', () => {
  itInFullLane('makes writes of others reject with STORAGE_HELD, and no run fails', async () => {
    const settings = { file: 'held.sqlite3', plugin: false, concurrency: 1, deaf: true }
    const one = await browser.open(settings)
    const two = await browser.open(settings)
    const three = await browser.open(settings)
    for (const page of [one, three]) await inTab(page, (tab) => tab.durably.stop())
    await inTab(two, async ({ halt, jobs }) => {
      halt.at = 2
      await jobs.work.trigger({ steps: 4, ms: 0 })
      await jobs.work.trigger({ steps: 2, ms: 0 })
    })
    await expect.poll(() => inTab(two, (tab) => tab.readWitness().length)).toBe(2)
    await inTab(one, (tab) => tab.holdFile())
    await browser.freeze(one)
    const code = await inTab(three, (tab) =>
      tab.jobs.work.trigger({ steps: 1, ms: 0 }).then(
        () => 'done',
        (error: unknown) => (error instanceof Error && 'code' in error ? error.code : String(error)),
      ),
    )
    await inTab(two, (tab) => tab.halt.end())
    // The worker asks for several things at once: those behind the first hear that this tab is waiting already.
    await untilInTab(two, ({ troubles }) => troubles.some((trouble) => trouble.endsWith(': STORAGE_HELD')))
    await untilInTab(two, ({ troubles }) => troubles.some((trouble) => trouble.startsWith('commit: ')))
    const during = await inTab(two, (tab) => ({
      bodies: tab.readWitness().length,
      heard: tab.heard.map((line) => line.split(' ')[0]),
      active: tab.durably.health().active.length,
    }))
    await browser.thaw(one)
    await inTab(one, (tab) => tab.letGoOfFile())

    expect(code).toBe('STORAGE_HELD')
    // One in progress, one waiting.
    expect(during).toEqual({ bodies: 2, heard: ['run:trigger', 'run:trigger'], active: 1 })
    await untilInTab(two, (tab) => tab.heard.filter((line) => line.startsWith('run:complete')).length === 2)
    expect(await inTab(two, (tab) => tab.heard.filter((line) => line.startsWith('run:')))).toHaveLength(4)
    expect(await audit(two)).toMatchObject({
      statuses: { completed: 2 },
      recordedSteps: 6,
      bodies: 6,
      repeated: [],
    })
  })
})
