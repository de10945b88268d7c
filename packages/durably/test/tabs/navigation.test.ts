import type { Page } from 'playwright'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { reportSuite } from '../../../../test/report'
import { scaled } from '../../../../test/scale'
import { inTab, untilInTab } from './audit'
import { openBrowser, type Browser } from './tabs'
import { itInFullLane } from '../../../../test/full-lane'

/** More than any number of crashes that a run may have. */
const NAVIGATIONS = scaled({ quick: 3, full: 30 })

let browser: Browser

beforeAll(async () => {
  browser = await openBrowser({ isWhole: true })
  return () => browser.close()
})

afterEach(() => browser.closeTabs())

const startLong = (page: Page) => inTab(page, async ({ jobs }) => (await jobs.linger.trigger({ once: false })).id)

/** Resolves when the long step has begun so many times, in whichever page. */
async function untilBegun(page: Page, times: number): Promise<void> {
  await expect.poll(() => inTab(page, (tab) => tab.readWitness().length)).toBe(times)
}

/** Out of the cache of pages nothing is loaded, so nobody hears of that. */
async function leaveAndComeBack(page: Page): Promise<void> {
  await page.goto('about:blank#elsewhere')
  await page.goBack({ waitUntil: 'commit' })
  await page.waitForFunction(() => window.tab !== undefined)
}

function lookAt(page: Page, id: string) {
  return inTab(
    page,
    async ({ durably }, runId) => {
      const run = await durably.getRun(runId)
      if (run === null) throw new Error('There is no such run.')
      const { status, crashCount, attempt, availableAt, createdAt } = run
      return { status, crashCount, attempt, isInItsPlace: availableAt === createdAt }
    },
    id,
  )
}

const UNHARMED = { status: 'running', crashCount: 0, attempt: 1, isInItsPlace: true }

describe('a page that somebody navigates away from', () => {
  it('harms no run of a long step, however often', async () => {
    const page = await browser.open({ file: 'reloads.sqlite3' })
    const id = await startLong(page)
    for (let n = 1; n <= NAVIGATIONS; n++) {
      await untilBegun(page, n)
      expect(await lookAt(page, id)).toEqual(UNHARMED)
      await browser.reload(page)
    }
    await untilBegun(page, NAVIGATIONS + 1)
    await inTab(page, (tab) => tab.lingering.end())
    await untilInTab(page, (tab) => tab.heard.some((line) => line.startsWith('run:complete')))
    expect(await lookAt(page, id)).toMatchObject({ status: 'completed', crashCount: 0 })
    reportSuite({ suite: 'navigations during one long step', navigations: NAVIGATIONS })
  })

  it('gives its runs to another tab, and comes back out of the cache of pages without harm', async () => {
    const settings = { file: 'elsewhere.sqlite3' }
    const one = await browser.openLeader(settings)
    const id = await startLong(one)
    await untilBegun(one, 1)
    const two = await browser.open(settings)
    await one.goto('about:blank#elsewhere')
    await untilBegun(two, 2)
    expect(await lookAt(two, id)).toEqual(UNHARMED)
    await one.goBack()
    await one.waitForFunction(() => window.tab !== undefined)
    await inTab(two, (tab) => tab.durably.stop({ timeout: 0 }))
    await untilInTab(one, (tab) => tab.isLeader())
    await untilBegun(one, 3)
    expect(await lookAt(one, id)).toEqual(UNHARMED)
    await inTab(one, (tab) => tab.lingering.end())
    await untilInTab(one, (tab) => tab.heard.some((line) => line.startsWith('run:complete')))
  })

  itInFullLane(
    'goes on where it was when it comes back with nobody else there, with what it was opening too',
    async () => {
      const page = await browser.open({ file: 'back.sqlite3' })
      const url = page.url()
      const id = await startLong(page)
      await untilBegun(page, 1)
      await leaveAndComeBack(page)
      await untilInTab(page, (tab) => tab.isLeader() && tab.durably.health().active.length === 1)
      expect(await lookAt(page, id)).toEqual(UNHARMED)
      await untilBegun(page, 1)

      // As early as can be: in the middle of whatever it takes to open the file.
      for (const file of ['soon-1.sqlite3', 'soon-2.sqlite3', 'soon-3.sqlite3']) {
        const opening = page.waitForEvent('worker')
        await page.goto(url.replace('back.sqlite3', file), { waitUntil: 'commit' })
        await opening
        await leaveAndComeBack(page)
        expect(await inTab(page, (tab) => tab.jobs.work.triggerAndWait({ steps: 1, ms: 0 }))).toMatchObject({
          output: 1,
        })
      }
    },
  )

  itInFullLane('counts as a crash when it crashes after it was frozen for a while', async () => {
    const one = await browser.openLeader({ file: 'frozen-crash.sqlite3' })
    const id = await startLong(one)
    await untilBegun(one, 1)
    await browser.freeze(one)
    await browser.thaw(one)
    expect(await lookAt(one, id)).toEqual(UNHARMED)
    await browser.crash(one)
    const two = await browser.open({ file: 'frozen-crash.sqlite3' })
    await untilBegun(two, 2)
    expect(await lookAt(two, id)).toEqual({ ...UNHARMED, crashCount: 1 })
  })

  itInFullLane('counts as a crash when it crashes', async () => {
    const settings = { file: 'crash.sqlite3' }
    const one = await browser.openLeader(settings)
    const id = await startLong(one)
    await untilBegun(one, 1)
    await browser.reload(one)
    await untilBegun(one, 2)
    const two = await browser.open(settings)
    await browser.crash(one)
    await untilBegun(two, 3)
    expect(await lookAt(two, id)).toEqual({ ...UNHARMED, crashCount: 1 })
  })
})

describe('explain()', () => {
  itInFullLane('says that another tab leads, and how long one waits for it', async () => {
    const settings = { file: 'explain.sqlite3', concurrency: 1 }
    const one = await browser.openLeader(settings)
    const two = await browser.open(settings)
    await startLong(one)
    await untilBegun(one, 1)
    const waiting = await startLong(two)
    const words = await inTab(two, ({ durably }, id) => durably.explain(id), waiting)
    expect(words).toMatch(
      /is due; another tab leads and takes it when .* heard of \d+ s ago; after 3600 s without news/,
    )
  })
})
