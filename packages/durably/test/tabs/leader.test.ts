import type { Page } from 'playwright'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { reportSuite } from '../../../../test/report'
import { scaled } from '../../../../test/scale'
import { audit, countEnded, inTab, untilInTab } from './audit'
import { openBrowser, type Browser } from './tabs'
import { itInFullLane } from '../../../../test/full-lane'

/** So long that whatever happens sooner happens because a tab was told. */
const NEVER_MS = 3_600_000

let browser: Browser

beforeAll(async () => {
  browser = await openBrowser()
  return () => browser.close()
})

afterEach(() => browser.closeTabs())

function triggerMany(page: Page, given: { readonly runs: number; readonly steps: number; readonly ms: number }) {
  return inTab(
    page,
    async (tab, { runs, steps, ms }) => {
      const ids: string[] = []
      for (let n = 0; n < runs; n++) ids.push((await tab.insist(() => tab.jobs.work.trigger({ steps, ms }))).id)
      return ids
    },
    given,
  )
}

describe('two tabs with a leader', () => {
  it('run everything once, whoever triggers it, and both hear of all', async () => {
    const runs = scaled({ quick: 12, full: 200 })
    const file = 'once.sqlite3'
    const leader = await browser.openLeader({ file })
    const follower = await browser.open({ file })
    const ids = (
      await Promise.all([leader, follower].map((page) => triggerMany(page, { runs: runs / 2, steps: 2, ms: 0 })))
    ).flat()
    await expect.poll(() => countEnded(follower)).toBe(runs)
    const found = await audit(follower)
    expect(found).toMatchObject({
      statuses: { completed: runs },
      recordedSteps: runs * 2,
      bodies: runs * 2,
      repeated: [],
    })
    expect(found.recordedBy).toEqual({ [await inTab(leader, (tab) => tab.name)]: runs * 2 })
    for (const page of [leader, follower]) {
      const heard = await inTab(page, (tab) => tab.heard)
      for (const type of ['run:trigger', 'run:complete']) {
        expect(heard.filter((line) => line.startsWith(type)).sort()).toEqual(ids.map((id) => `${type} ${id}`).sort())
      }
    }
    expect([await inTab(leader, (tab) => tab.tenures), await inTab(follower, (tab) => tab.tenures)]).toEqual([
      [true],
      [],
    ])
    expect(await inTab(leader, (tab) => tab.errors)).toEqual([])
    reportSuite({ suite: 'two tabs, one leader', runs, bodies: found.bodies })
  })

  itInFullLane('tell each other at once: nobody waits for a poll', async () => {
    const settings = { file: 'prompt.sqlite3', pollingMs: NEVER_MS, heartbeatMs: NEVER_MS / 2 }
    const leader = await browser.openLeader(settings)
    const follower = await browser.open(settings)
    const done = await inTab(follower, (tab) => tab.jobs.work.triggerAndWait({ steps: 2, ms: 0 }))
    expect(done).toMatchObject({ output: 2 })
    const id = await inTab(follower, async (tab) => (await tab.jobs.hold.trigger({})).id)
    await untilInTab(leader, (tab) => tab.durably.health().active.length === 1)
    await inTab(follower, (tab, run) => tab.durably.cancel(run), id)
    await untilInTab(leader, (tab) => tab.durably.health().active.length === 0)
    expect(await inTab(follower, (tab, run) => tab.durably.getRun(run), id)).toMatchObject({ status: 'cancelled' })
  })

  it('go on at once when the leader closes under load', async () => {
    const runs = 12
    const file = 'closed.sqlite3'
    const leader = await browser.openLeader({ file })
    const follower = await browser.open({ file })
    const name = await inTab(leader, (tab) => tab.name)
    // Some runs stay in its hands.
    await inTab(leader, (tab) => {
      tab.halt.at = 5
    })
    await triggerMany(follower, { runs, steps: 5, ms: 40 })
    await untilInTab(leader, (tab) => tab.readWitness().some((line) => line.endsWith('/step 5')))
    const closedAt = performance.now()
    await leader.close()
    await untilInTab(follower, (tab) => tab.isLeader())
    const takeoverMs = Math.round(performance.now() - closedAt)
    await expect.poll(() => countEnded(follower)).toBe(runs)
    const found = await audit(follower, name)
    expect(found).toMatchObject({ statuses: { completed: runs }, recordedSteps: runs * 5, repeated: [] })
    expect(found.recordedBy[name]).toBeGreaterThan(0)
    // What had begun in the tab that is gone, and nothing else.
    expect(found.bodies - runs * 5).toBeLessThanOrEqual(4)
    expect(await inTab(follower, (tab) => [tab.tenures, tab.errors])).toEqual([[true], []])
    reportSuite({ suite: 'a leader tab that closes', runs, takeoverMs })
  })

  itInFullLane('take turns by stop(), start() and close()', async () => {
    const settings = { file: 'turns.sqlite3', pollingMs: NEVER_MS }
    const one = await browser.openLeader(settings)
    const two = await browser.open(settings)
    await inTab(one, (tab) => tab.durably.stop())
    await untilInTab(two, (tab) => tab.isLeader())
    await inTab(one, (tab) => tab.durably.start())
    await inTab(two, (tab) => tab.durably.close())
    await untilInTab(one, (tab) => tab.isLeader())
    await inTab(one, (tab) => tab.jobs.work.triggerAndWait({ steps: 1, ms: 0 }))
    expect(await inTab(two, (tab) => [tab.tenures, tab.heard])).toEqual([[true, false], []])
    expect(await inTab(one, (tab) => [tab.tenures, tab.durably.health().worker])).toEqual([
      [true, false, true],
      'running',
    ])
  })

  itInFullLane('pass on what can be passed on of an event, and no event twice', async () => {
    const pages = []
    for (let n = 0; n < 3; n++) pages.push(await browser.open({ file: 'events.sqlite3' }))
    const [first, ...others] = pages as [Page, ...Page[]]
    await inTab(first, ({ durably }) => {
      durably.emit({ type: 'run:complete', runId: 'odd', jobName: 'odd', output: () => {}, duration: 1 })
      durably.emit({ type: 'run:complete', runId: 'even', jobName: 'even', output: { fine: true }, duration: 1 })
    })
    for (const page of others) await untilInTab(page, (tab) => tab.heard.includes('run:complete even'))
    for (const page of pages) {
      expect(await inTab(page, (tab) => tab.heard)).toEqual(['run:complete odd', 'run:complete even'])
      expect(await inTab(page, (tab) => tab.errors)).toEqual([])
    }
  })
})

describe('what the plugin needs', () => {
  it.each(['locks', 'BroadcastChannel'])(
    'is missed where it is missing, and the tab works alone: %s',
    async (missing) => {
      const page = await browser.open({ file: 'missing.sqlite3' })
      const alone = await inTab(
        page,
        (tab, name) => {
          const place = name === 'locks' ? Navigator.prototype : window
          Object.defineProperty(place, name, { value: undefined, configurable: true })
          return tab.workElsewhere()
        },
        missing,
      )
      expect(alone.output).toBe(1)
      expect(alone.told).toEqual(expect.arrayContaining(['INVALID_OPTION', true]))
    },
  )
})

describe('two tabs without a leader', () => {
  itInFullLane('are safe: every run completes, every step is recorded once', async () => {
    const runs = scaled({ quick: 10, full: 40 })
    const settings = { file: 'apart.sqlite3', plugin: false }
    const one = await browser.open(settings)
    const two = await browser.open(settings)
    await Promise.all([one, two].map((page) => triggerMany(page, { runs: runs / 2, steps: 2, ms: 0 })))
    await expect.poll(() => countEnded(two)).toBe(runs)
    expect(await audit(two)).toMatchObject({
      statuses: { completed: runs },
      recordedSteps: runs * 2,
      repeated: [],
      recordedBy: expect.objectContaining({ [await inTab(one, (tab) => tab.name)]: expect.any(Number) }),
    })
  })
})
