import type { Page } from 'playwright'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { audit, inTab, untilInTab } from './audit'
import { openBrowser, type Browser } from './tabs'

const LEASE_MS = 3000
const HEARTBEAT_MS = 1000

let browser: Browser

beforeAll(async () => {
  browser = await openBrowser()
}, 60_000)

afterEach(() => browser.closeTabs(), 30_000)
afterAll(() => browser.close(), 30_000)

interface Frozen {
  readonly one: Page
  readonly two: Page
  /** Of the first tab. */
  readonly name: string
  readonly frozenAt: number
}

/** Two tabs, the first of them frozen in the third step of a run, with nothing of it on the way to the file. */
async function openAndFreeze(): Promise<Frozen> {
  for (let tries = 1; ; tries++) {
    const settings = { file: `frozen-${tries}.sqlite3`, leaseMs: LEASE_MS, heartbeatMs: HEARTBEAT_MS }
    const one = await browser.open(settings)
    const two = await browser.open(settings)
    const name = await inTab(one, (tab) => tab.name)
    await inTab(two, (tab) => tab.jobs.work.trigger({ steps: 6, ms: 500 }))
    await expect.poll(() => inTab(two, (tab) => tab.readWitness().length), { timeout: 20_000 }).toBe(3)
    await browser.freeze(one)
    const frozenAt = performance.now()
    if (await inTab(two, (tab) => tab.canWrite())) return { one, two, name, frozenAt }
    // A renewal was on its way just then, and the file is held: another test's case.
    await browser.closeTabs()
  }
}

describe('a leader', { timeout: 60_000 }, () => {
  it('that is frozen is followed after one lease, and writes nothing when it thaws', async () => {
    const { one, two, name, frozenAt } = await openAndFreeze()
    await untilInTab(two, (tab) => tab.isLeader())
    const stolenAfterMs = performance.now() - frozenAt
    await untilInTab(two, (tab) => tab.heard.some((line) => line.startsWith('run:complete')))
    const restMs = Math.max(0, 3 * LEASE_MS - (performance.now() - frozenAt))
    await inTab(two, (_tab, ms) => new Promise((resolve) => setTimeout(resolve, ms)), restMs)
    const before = await audit(two, name)

    await browser.thaw(one)
    await untilInTab(one, (tab) => tab.tenures.at(-1) === false && tab.durably.health().worker === 'stopped')

    expect(stolenAfterMs).toBeGreaterThan(LEASE_MS - 1.5 * HEARTBEAT_MS)
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

  it('that is hidden beats on, slower, and stays the leader', async () => {
    const settings = { file: 'hidden.sqlite3', leaseMs: LEASE_MS, heartbeatMs: 500 }
    const one = await browser.open(settings)
    await browser.cover(one)
    const two = await browser.open(settings)
    expect(await inTab(one, () => document.visibilityState)).toBe('hidden')
    expect(await inTab(two, () => document.visibilityState)).toBe('visible')
    await inTab(two, (tab, ms) => tab.jobs.work.triggerAndWait({ steps: 4, ms }), LEASE_MS / 2)
    expect(await audit(two)).toMatchObject({ statuses: { completed: 1 }, bodies: 4, repeated: [] })
    expect([await inTab(one, (tab) => tab.tenures), await inTab(two, (tab) => tab.tenures)]).toEqual([[true], []])
  })
})

describe('a frozen tab that holds the file', { timeout: 60_000 }, () => {
  it('makes writes of others reject with STORAGE_HELD, and no run fails', async () => {
    const settings = { file: 'held.sqlite3', leaseMs: LEASE_MS, heartbeatMs: 500 }
    const one = await browser.open(settings)
    const two = await browser.open(settings)
    await inTab(two, (tab) => tab.jobs.work.triggerAndWait({ steps: 1, ms: 0 }))
    await inTab(one, (tab) => tab.holdFile())
    await browser.freeze(one)
    const code = await inTab(two, (tab) =>
      tab.jobs.work.trigger({ steps: 1, ms: 0 }).then(
        () => 'done',
        (error: unknown) => (error instanceof Error && 'code' in error ? error.code : String(error)),
      ),
    )
    await browser.thaw(one)
    await inTab(one, (tab) => tab.letGoOfFile())
    expect(code).toBe('STORAGE_HELD')
    expect(await inTab(two, (tab) => tab.jobs.work.triggerAndWait({ steps: 2, ms: 0 }))).toMatchObject({ output: 2 })
    expect((await audit(two)).statuses).toEqual({ completed: 2 })
  })
})
