import type { Page } from 'playwright'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { reportSuite } from '../../../../test/report'
import { scaled } from '../../../../test/scale'
import { audit, countEnded, inTab, untilInTab } from './audit'
import { openBrowser, type Browser } from './tabs'

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
  it('are one group whatever their names: each body runs once', async () => {
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

  it('do not wait for the long step of an old one: it is given back, and goes on in the new', async () => {
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

  it('leave a run to wait that only the older one knows, and say so', async () => {
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

describe('a tab that hands over to one that knows another job', () => {
  const heartbeatMs = 300
  const longBody = (page: Page, once: boolean) =>
    inTab(page, async ({ jobs }, given) => (await jobs.linger.trigger({ once: given })).id, once)
  const bodiesOf = async (page: Page, name: string) =>
    (await inTab(page, (tab) => tab.readWitness())).filter((line) => line.endsWith(`/${name}`)).length
  const triggerRare = (page: Page, name: string) =>
    inTab(
      page,
      async ({ durably }, job) => {
        for (;;) {
          try {
            return (await durably.trigger(job, {})).id
          } catch (error) {
            // On a slow machine the file may be in other hands for longer than a call waits. Nothing was sent then.
            if ((error as { code?: unknown }).code !== 'CONNECTION_HELD') throw error
          }
        }
      },
      name,
    )
  const statusOf = (page: Page, id: string) =>
    inTab(page, async ({ durably }, run) => (await durably.getRun(run))?.status, id)

  /** The first tab has a long step in hand, and the second leads. */
  async function openHandedOver(file: string, once = true) {
    const one = await browser.openLeader({ file, heartbeatMs, knows: 'apples' })
    const id = await longBody(one, once)
    await expect.poll(() => bodiesOf(one, 'long')).toBe(1)
    const pears = await triggerRare(one, 'pears')
    const two = await browser.open({ file, heartbeatMs, knows: 'pears' })
    await expect.poll(() => statusOf(two, pears)).toBe('completed')
    await untilInTab(two, (tab) => tab.isLeader())
    return { one, two, id }
  }

  /** With each of them the leader looks for runs that are nobody's. */
  async function beatsHeardIn(page: Page) {
    await inTab(page, ({ beats }) => {
      beats.heard = 0
    })
    await untilInTab(page, ({ beats }) => beats.heard > 3)
  }

  it('goes on with what it has in hand, and nobody waits for that', async () => {
    const { one, two, id } = await openHandedOver('in-hand.sqlite3')
    expect(await inTab(one, ({ durably }) => durably.health())).toMatchObject({ worker: 'stopping', active: [id] })
    // To and fro, each for what only it knows, with the long step in hand all the while.
    for (const job of ['apples', 'pears', 'apples', 'pears']) {
      const rare = await triggerRare(two, job)
      await expect.poll(() => statusOf(two, rare)).toBe('completed')
    }
    await untilInTab(two, (tab) => tab.isLeader())
    await beatsHeardIn(one)
    await inTab(one, (tab) => tab.lingering.end())
    await untilInTab(one, (tab) => tab.durably.health().worker === 'stopped')
    expect(await inTab(two, ({ durably }, run) => durably.getRun(run), id)).toMatchObject({
      status: 'completed',
      crashCount: 0,
    })
    expect(await bodiesOf(two, 'long')).toBe(1)
    expect((await audit(two)).recordedBy).toEqual({ [await nameOf(one)]: 3, [await nameOf(two)]: 3 })
  })

  it.each([
    ['closed', (page: Page) => page.close(), 0],
    ['crashed', (page: Page) => browser.crash(page), 1],
    ['frozen', (page: Page) => browser.freeze(page), 0],
  ] as const)('is followed in what it has in hand when it is %s', async (what, end, crashCount) => {
    const { one, two, id } = await openHandedOver(`${what}-with-runs.sqlite3`, false)
    await beatsHeardIn(one)
    expect(await bodiesOf(two, 'long')).toBe(1)
    await end(one)
    await expect.poll(() => bodiesOf(two, 'long')).toBe(2)
    expect(await inTab(two, ({ durably }, run) => durably.getRun(run), id)).toMatchObject({ crashCount })
    await inTab(two, (tab) => tab.lingering.end())
    await expect.poll(() => statusOf(two, id)).toBe('completed')
    if (what !== 'frozen') return
    await browser.thaw(one)
    await untilInTab(one, (tab) => tab.durably.health().worker === 'stopped')
    expect((await audit(one)).recordedBy[await nameOf(one)]).toBeUndefined()
  })

  it('goes on with it after a sleep in which nobody looked', async () => {
    const { one, two, id } = await openHandedOver('slept.sqlite3')
    await two.close()
    await untilInTab(one, (tab) => tab.isLeader())
    const other = await browser.open({ file: 'slept.sqlite3', heartbeatMs: 1_800_000, knows: 'pears' })
    const pears = await triggerRare(one, 'pears')
    await expect.poll(() => statusOf(other, pears)).toBe('completed')
    await browser.freeze(one)
    await browser.thaw(one)
    await inTab(one, (tab) => tab.lingering.end())
    await expect.poll(() => statusOf(one, id)).toBe('completed')
    expect(await bodiesOf(one, 'long')).toBe(1)
  })

  it('gives it back when a newer version leads', async () => {
    const { two, id } = await openHandedOver('replaced-with-runs.sqlite3', false)
    const newer = await browser.open({ file: 'replaced-with-runs.sqlite3', heartbeatMs, version: '1' })
    await expect.poll(() => bodiesOf(two, 'long')).toBe(2)
    await inTab(newer, (tab) => tab.lingering.end())
    await expect.poll(() => statusOf(newer, id)).toBe('completed')
    expect(await inTab(newer, ({ durably }, run) => durably.getRun(run), id)).toMatchObject({ crashCount: 0 })
  })
})
