import type { Page } from 'playwright'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { LONG_PATIENCE_MS, paced } from '../../../../test/pace'
import { reportSuite } from '../../../../test/report'
import { inLane, scaled } from '../../../../test/scale'
import { audit, countEnded, inTab, untilInTab } from './audit'
import type { Tab } from './page/main'
import { openBrowser, type Browser } from './tabs'
import { itInFullLane } from '../../../../test/full-lane'

const ROUNDS = scaled({ quick: 1, full: 10 })
/** Enough for a tab to be at it for seconds. */
const RUNS = scaled({ quick: 8, full: 16 })
const STEPS = 15
/** Until another tab has written, of which a second is the patience of turns. The lane with the counts has an eye on it. */
const MOST_WRITE_MS = scaled({ quick: Number.POSITIVE_INFINITY, full: paced(3000) })

let browser: Browser

beforeAll(async () => {
  browser = await openBrowser({ isWhole: true })
  return () => browser.close()
})

afterEach(() => browser.closeTabs())

interface Group {
  readonly leader: Page
  readonly follower: Page
  readonly leaderName: string
}

/** The first tab is under load: it writes without a pause. */
async function openUnderLoad(file: string, load: (page: Page) => Promise<unknown>): Promise<Group> {
  const leader = await browser.openLeader({ file })
  const follower = await browser.open({ file })
  await load(follower)
  await untilInTab(leader, (tab) => tab.heard.some((line) => line.startsWith('run:complete')))
  return { leader, follower, leaderName: await inTab(leader, (tab) => tab.name) }
}

/** How long a write took. SQLite asks for a file that is held for 4.5 s, and refuses then. */
function writeIn(page: Page): Promise<{ readonly isRefused: boolean; readonly ms: number }> {
  return inTab(page, async (tab) => {
    const startedAt = performance.now()
    const isRefused = !(await tab.canWrite())
    return { isRefused, ms: performance.now() - startedAt }
  })
}

interface Load {
  readonly runs: number
  readonly steps: number
}

async function triggerWork({ jobs }: Tab, { runs, steps }: Load): Promise<void> {
  for (let n = 0; n < runs; n++) await jobs.work.trigger({ steps, ms: 0 })
}

async function triggerRows({ jobs }: Tab, { runs, steps }: Load): Promise<void> {
  for (let n = 0; n < runs; n++) await jobs.rows.trigger({ steps })
}

const manySteps = (page: Page) => inTab(page, triggerWork, { runs: RUNS, steps: STEPS })

const manyTransactions = (page: Page) => inTab(page, triggerRows, { runs: RUNS, steps: STEPS })

const crashesOf = (page: Page) =>
  inTab(page, async ({ durably }) => (await durably.getRuns()).map(({ crashCount }) => crashCount))

describe('a busy leader that is frozen', () => {
  const loads = [
    ['steps', manySteps],
    ['transactions', manyTransactions],
  ] as const
  it.each(inLane(loads, ([what]) => what === 'steps'))(
    'lets go of file and work at once, and no run suffers: %s',
    { timeout: LONG_PATIENCE_MS },
    async (what, load) => {
      const times: number[] = []
      for (let round = 1; round <= ROUNDS; round++) {
        const { leader, follower, leaderName } = await openUnderLoad(`freeze-${what}-${round}.sqlite3`, load)
        await browser.freeze(leader)
        const { isRefused, ms } = await writeIn(follower)
        expect(isRefused).toBe(false)
        times.push(ms)
        await untilInTab(follower, (tab) => tab.isLeader())
        await expect.poll(() => countEnded(follower)).toBe(RUNS)
        const before = await audit(follower, leaderName)
        expect(before).toMatchObject({ statuses: { completed: RUNS }, recordedSteps: RUNS * STEPS })
        if (what === 'steps') expect(before.repeated).toEqual([])
        expect(before.recordedBy[leaderName]).toBeGreaterThan(0)
        expect(new Set(await crashesOf(follower))).toEqual(new Set([0]))

        await browser.thaw(leader)
        await untilInTab(leader, (tab) => tab.tenures.at(-1) === false && tab.durably.health().worker === 'stopped')
        expect(await audit(follower, leaderName)).toEqual(before)
        expect(await inTab(leader, (tab) => tab.heard.filter((line) => line.startsWith('run:fail')))).toEqual([])
        await follower.close()
        await untilInTab(leader, (tab) => tab.isLeader())
        expect(await inTab(leader, (tab) => tab.jobs.work.triggerAndWait({ steps: 1, ms: 0 }))).toMatchObject({
          output: 1,
        })
        await browser.closeTabs()
      }
      const sorted = [...times].sort((a, b) => a - b)
      const [medianMs, worstMs] = [sorted[Math.floor((sorted.length - 1) / 2)] ?? 0, sorted.at(-1) ?? 0]
      reportSuite({
        suite: `a frozen leader under load: ${what}`,
        rounds: ROUNDS,
        medianWriteMs: Math.round(medianMs),
        worstWriteMs: Math.round(worstMs),
      })
      expect(worstMs).toBeLessThan(MOST_WRITE_MS)
    },
  )

  itInFullLane('and thaws before anybody took its place goes on as the leader', async () => {
    const page = await browser.open({ file: 'alone.sqlite3' })
    await manySteps(page)
    await untilInTab(page, (tab) => tab.heard.some((line) => line.startsWith('run:complete')))
    for (let round = 0; round < 3; round++) {
      await browser.freeze(page)
      await browser.thaw(page)
    }
    await expect.poll(() => countEnded(page)).toBe(RUNS)
    expect(await audit(page)).toMatchObject({ statuses: { completed: RUNS }, recordedSteps: RUNS * STEPS })
    expect(await inTab(page, (tab) => tab.tenures)).toEqual([true])
    expect(new Set(await crashesOf(page))).toEqual(new Set([0]))
  })
})
