import type { Page } from 'playwright'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { reportSuite } from '../../../../test/report'
import { scaled } from '../../../../test/scale'
import { audit, countEnded, inTab, untilInTab } from './audit'
import { openBrowser, type Browser } from './tabs'
import { itInFullLane } from '../../../../test/full-lane'

let browser: Browser

beforeAll(async () => {
  browser = await openBrowser()
  return () => browser.close()
})

afterEach(() => browser.closeTabs())

async function triggerMany(page: Page, runs: number): Promise<void> {
  await inTab(
    page,
    async (tab, count) => {
      for (let n = 0; n < count; n++) await tab.jobs.work.trigger({ steps: 1, ms: 20 })
    },
    runs,
  )
}

const nameOf = (page: Page) => inTab(page, (tab) => tab.name)

describe('tabs on one file', () => {
  itInFullLane('are one group whatever their names: each body runs once', async () => {
    const runs = scaled({ quick: 20, full: 200 })
    const file = 'names.sqlite3'
    // Short beats: with each of them a leader takes back what it finds with others.
    const one = await browser.openLeader({ file, name: 'old name', heartbeatMs: 300 })
    const two = await browser.open({ file: `/${file}`, name: 'new name', heartbeatMs: 300 })
    await Promise.all([one, two].map((page) => triggerMany(page, runs / 2)))
    await expect.poll(() => countEnded(two)).toBe(runs)
    const bodies = (await Promise.all([one, two].map((page) => inTab(page, (tab) => tab.readWitness())))).flat()
    expect(new Set(bodies).size).toBe(runs)
    expect(bodies).toHaveLength(runs)
    const found = await audit(two)
    expect(found).toMatchObject({ statuses: { completed: runs }, recordedSteps: runs })
    expect(found.recordedBy).toEqual({ [await nameOf(one)]: runs })
    expect([await inTab(one, (tab) => tab.tenures), await inTab(two, (tab) => tab.tenures)]).toEqual([[true], []])
    reportSuite({ suite: 'two names on one file', runs, bodies: bodies.length })
  })
})

describe('two versions of an application', () => {
  it('are led by the newest, whichever was there first and whoever leaves', async () => {
    const file = 'versions.sqlite3'
    const old = await browser.openLeader({ file, version: '1.9.0' })
    const newer = await browser.open({ file, version: '1.10.0' })
    await untilInTab(newer, (tab) => tab.isLeader())
    await untilInTab(old, (tab) => !tab.isLeader())
    await triggerMany(old, 10)
    await expect.poll(() => countEnded(old)).toBe(10)
    expect((await audit(old)).recordedBy).toEqual({ [await nameOf(newer)]: 10 })

    const newest = await browser.open({ file, version: '2' })
    await untilInTab(newest, (tab) => tab.isLeader())
    await newest.close()
    await untilInTab(newer, (tab) => tab.isLeader())
    await untilInTab(old, (tab) => !tab.isLeader())
    await triggerMany(old, 10)
    await expect.poll(() => countEnded(old)).toBe(20)
    const found = await audit(old)
    expect(found).toMatchObject({ statuses: { completed: 20 }, repeated: [] })
    expect(found.recordedBy[await nameOf(newer)]).toBe(20)
  })

  itInFullLane('do not wait for the long step of an old one: it is given back, and goes on in the new', async () => {
    const file = 'handover.sqlite3'
    const old = await browser.openLeader({ file, version: '1' })
    const id = await inTab(old, async ({ jobs }) => (await jobs.linger.trigger({ once: false })).id)
    await expect.poll(() => inTab(old, (tab) => tab.readWitness().length)).toBe(1)
    const newer = await browser.open({ file, version: '2' })
    await expect.poll(() => inTab(newer, (tab) => tab.readWitness().length)).toBe(2)
    await inTab(newer, (tab) => tab.lingering.end())
    await untilInTab(newer, (tab) => tab.heard.some((line) => line.startsWith('run:complete')))
    expect(await inTab(newer, async ({ durably }, run) => (await durably.getRun(run))?.crashCount, id)).toBe(0)
  })

  it('run what only one of them knows: a leader that does not know a job hands over to a tab that does', async () => {
    const file = 'novel.sqlite3'
    const one = await browser.openLeader({ file, heartbeatMs: 500 })
    const id = await inTab(one, async ({ durably }) => (await durably.trigger('novel', {})).id)
    await expect
      .poll(() => inTab(one, ({ durably }, run) => durably.explain(run), id))
      .toMatch(/is due; this tab leads and does not know the job/)
    const two = await browser.open({ file, heartbeatMs: 500, knows: 'novel' })
    await untilInTab(two, (tab) => tab.heard.some((line) => line.startsWith('run:complete')))
    expect(await inTab(two, ({ durably }, run) => durably.getRun(run), id)).toMatchObject({ status: 'completed' })
    // Both know it, so nobody has to hand over for it.
    await triggerMany(one, 4)
    await expect.poll(() => countEnded(one)).toBe(5)
    expect(await inTab(two, (tab) => tab.isLeader())).toBe(true)
  })

  itInFullLane('leave a run to wait that only the older one knows, and say so', async () => {
    const file = 'dropped.sqlite3'
    const old = await browser.openLeader({ file, version: '1', heartbeatMs: 200, knows: 'novel' })
    const newer = await browser.open({ file, version: '2', heartbeatMs: 200 })
    await untilInTab(newer, (tab) => tab.isLeader())
    const id = await inTab(old, async ({ durably }) => (await durably.trigger('novel', {})).id)
    await expect
      .poll(() => inTab(old, ({ durably }, run) => durably.explain(run), id))
      .toMatch(/is due; the tab that leads does not know the job, and it is newer than this one/)
    await inTab(old, ({ beats }) => {
      beats.heard = 0
    })
    await untilInTab(old, ({ beats }) => beats.heard > 5)
    expect(await inTab(newer, (tab) => tab.tenures)).toEqual([true])
  })
})
