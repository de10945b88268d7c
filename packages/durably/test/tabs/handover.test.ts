import type { Page } from 'playwright'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { audit, inTab, untilInTab } from './audit'
import { openBrowser, type Browser } from './tabs'
import { itInFullLane } from '../../../../test/full-lane'
import { inLane } from '../../../../test/scale'

let browser: Browser

beforeAll(async () => {
  browser = await openBrowser({ isWhole: true })
  return () => browser.close()
})

afterEach(() => browser.closeTabs())

const nameOf = (page: Page) => inTab(page, (tab) => tab.name)

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

  itInFullLane('goes on with what it has in hand, and nobody waits for that', async () => {
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

  const ends = [
    ['closed', (page: Page) => page.close(), 0],
    ['crashed', (page: Page) => browser.crash(page), 1],
    ['frozen', (page: Page) => browser.freeze(page), 0],
  ] as const
  it.each(inLane(ends, ([what]) => what === 'closed'))(
    'is followed in what it has in hand when it is %s',
    async (what, end, crashCount) => {
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
    },
  )

  itInFullLane('goes on with it after a sleep in which nobody looked', async () => {
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

  itInFullLane('gives it back when a newer version leads', async () => {
    const { two, id } = await openHandedOver('replaced-with-runs.sqlite3', false)
    const newer = await browser.open({ file: 'replaced-with-runs.sqlite3', heartbeatMs, version: '1' })
    await expect.poll(() => bodiesOf(two, 'long')).toBe(2)
    await inTab(newer, (tab) => tab.lingering.end())
    await expect.poll(() => statusOf(newer, id)).toBe('completed')
    expect(await inTab(newer, ({ durably }, run) => durably.getRun(run), id)).toMatchObject({ crashCount: 0 })
  })
})
