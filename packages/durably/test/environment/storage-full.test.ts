import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium, type BrowserContext, type Page } from 'playwright'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { chromiumOptions } from '../../../../test/chromium'
import { reportSuite } from '../../../../test/report'
import type { Answer } from './page-api'
import { buildPage, ISOLATED, type PageServer, removePage, servePage } from './page-server'
import { itInFullLane } from '../../../../test/full-lane'

const CONFIG = { databasePath: 'jobs.sqlite3' }
/** More than twice what is kept for deleting. */
const QUOTA = 8_000_000
const LENGTH = 100_000

let folder = ''
let profile = ''
let server: PageServer
let context: BrowserContext

beforeEach(async () => {
  folder = await buildPage()
  server = await servePage({ folder, headers: ISOLATED })
  profile = mkdtempSync(join(tmpdir(), 'durably-storage-full-'))
  context = await chromium.launchPersistentContext(profile, chromiumOptions())
})

afterEach(async () => {
  await context.close()
  await server.close()
  removePage(folder)
  removePage(profile)
})

/** Gives the site this much space; without a number, what the browser gives everybody. */
async function setQuota(page: Page, quotaSize?: number): Promise<void> {
  const cdp = await context.newCDPSession(page)
  await cdp.send('Storage.overrideQuotaForOrigin', { origin: origin(), ...(quotaSize !== undefined && { quotaSize }) })
}

const origin = () => `http://127.0.0.1:${server.port}`

const migrate = (page: Page) => page.evaluate((config) => window.api.migrate(config), CONFIG)

async function visit(): Promise<Page> {
  const page = await context.newPage()
  await page.goto(origin())
  await page.waitForFunction(() => 'api' in window)
  return page
}

async function openPage(): Promise<Page> {
  const page = await visit()
  expect(await migrate(page)).toMatchObject({ ok: true })
  return page
}

const triggerOf = (page: Page, letter: string) =>
  page.evaluate(([text, length]) => window.api.trigger(text.repeat(length)), [letter, LENGTH] as const)

interface Filled {
  readonly kept: readonly string[]
  readonly refusal: Answer
}

async function fill(page: Page): Promise<Filled> {
  const kept: string[] = []
  for (let count = 0; count < QUOTA / LENGTH; count++) {
    const answer = await triggerOf(page, 'a')
    if (!answer.ok) return { kept, refusal: answer }
    kept.push(String(answer.value))
  }
  throw new Error('more was stored than the quota allows')
}

async function idsIn(page: Page): Promise<readonly string[]> {
  const answer = await page.evaluate(() => window.api.runs())
  return answer.ok ? (answer.value as { id: string }[]).map(({ id }) => id).sort() : []
}

itInFullLane(
  'refuses a write that the storage has no room for, keeps the rest, and goes on when there is room',
  async () => {
    const page = await openPage()
    await setQuota(page, QUOTA)
    const { kept, refusal } = await fill(page)
    expect(refusal).toMatchObject({ ok: false, isOurs: true, code: 'STORAGE_FULL' })
    expect(refusal.ok ? '' : refusal.message).toMatch(/full/i)
    expect(refusal.ok ? '' : refusal.message).toMatch(/quota|space/i)
    expect(kept.length).toBeGreaterThan(5)
    expect(await idsIn(page)).toEqual([...kept].sort())
    const first = await page.evaluate((id) => window.api.payloadOf(id), kept[0] ?? '')
    expect(first).toMatchObject({ ok: true, value: { text: 'a'.repeat(LENGTH) } })

    await setQuota(page)
    const next = await triggerOf(page, 'b')
    expect(next).toMatchObject({ ok: true })
    const all = [...kept, next.ok ? String(next.value) : ''].sort()
    expect(await idsIn(page)).toEqual(all)
    await page.reload()
    expect(await migrate(page)).toMatchObject({ ok: true })
    expect(await idsIn(page)).toEqual(all)
    reportSuite({ suite: 'storage full in a browser', kept: kept.length })
  },
)

itInFullLane('does not fail a run that meets a full storage, and goes on with it when there is room', async () => {
  const page = await openPage()
  await setQuota(page, QUOTA)
  const steps = (2 * QUOTA) / LENGTH
  await page.evaluate(([count, length]) => window.api.grow(count, length), [steps, LENGTH] as const)
  await page.waitForFunction(() => window.api.troubles().includes('STORAGE_FULL'))
  expect(await page.evaluate(() => window.api.runs())).toMatchObject({
    value: [{ status: expect.stringMatching(/^(running|pending)$/) }],
  })
  await setQuota(page)
  const statuses = async () => page.evaluate(() => window.api.runs())
  await expect.poll(statuses).toMatchObject({ value: [{ status: 'completed' }] })
  // On a slow machine an answer may take longer than it is waited for.
  const others = (await page.evaluate(() => window.api.troubles())).filter((code) => code !== 'STORAGE_UNAVAILABLE')
  expect(new Set(others)).toEqual(new Set(['STORAGE_FULL']))
})

/** Runs that have ended, of this length each. */
async function keepEnded(page: Page, count: number): Promise<readonly string[]> {
  const ids: string[] = []
  for (let n = 0; n < count; n++) {
    const answer = await triggerOf(page, 'e')
    ids.push(answer.ok ? String(answer.value) : '')
    expect(await page.evaluate((id) => window.api.cancel(id), ids.at(-1) ?? '')).toMatchObject({ ok: true })
  }
  return ids
}

const remove = (page: Page, id = '') => page.evaluate((given) => window.api.remove(given), id)

/** The room that is kept is taken in the background. */
async function untilReserved(page: Page): Promise<void> {
  const sizes = () =>
    page.evaluate(async () => {
      const sizesOfParts: number[] = []
      for await (const [name, handle] of (await navigator.storage.getDirectory()).entries()) {
        if (!name.startsWith('.durably-reserve-')) continue
        sizesOfParts.push((await (handle as FileSystemFileHandle).getFile()).size)
      }
      return sizesOfParts
    })
  await expect.poll(sizes).toEqual([1, 2, 3].map(() => 1.25 * 1024 * 1024))
}

/** Takes what room there is, to the last byte. */
async function takeAllRoom(page: Page): Promise<void> {
  const usage = await page.evaluate(async () => (await navigator.storage.estimate()).usage ?? 0)
  await setQuota(page, usage)
}

it('deletes runs when there is no room for anything else, more than once, and what that frees is used', async () => {
  const page = await openPage()
  const ended = await keepEnded(page, 7)
  await untilReserved(page)
  for (const id of ended.slice(0, 3)) {
    await takeAllRoom(page)
    const { refusal } = await fill(page)
    expect(refusal.ok ? '' : refusal.message).toContain('Delete runs or files of the site: room is kept for that.')
    expect(await remove(page, id)).toMatchObject({ ok: true })
    expect(await triggerOf(page, 'b')).toMatchObject({ ok: true })
  }
  await setQuota(page)
  expect(await page.evaluate(() => window.api.purge())).toMatchObject({ ok: true, value: 4 })
  await untilReserved(page)
})

itInFullLane('deletes all the same when the page is put to sleep in the middle of it', async () => {
  const page = await openPage()
  const ended = await keepEnded(page, 4)
  await untilReserved(page)
  await takeAllRoom(page)
  await fill(page)
  for (const [index, ms] of [0, 20, 80].entries()) {
    const answer = await page.evaluate(
      async ([id, time]) => {
        const removed = window.api.remove(id)
        await new Promise((resolve) => setTimeout(resolve, time))
        document.dispatchEvent(new Event('freeze'))
        await new Promise((resolve) => setTimeout(resolve, 50))
        document.dispatchEvent(new Event('resume'))
        return removed
      },
      [ended[index] ?? '', ms] as const,
    )
    if (!answer.ok) {
      expect(answer.code).toBe('STORAGE_UNAVAILABLE')
      const again = await remove(page, ended[index])
      // Whether it had been done before the page slept, nobody could tell.
      expect(again.ok ? 'NOT_FOUND' : again.code).toBe('NOT_FOUND')
    }
    expect(await idsIn(page)).not.toContain(ended[index])
  }
  await setQuota(page)
  expect(await remove(page, ended[3])).toMatchObject({ ok: true })
  await untilReserved(page)
})

itInFullLane('says what helps when even the room for deleting is gone', async () => {
  const page = await openPage()
  const [ended] = await keepEnded(page, 1)
  await setQuota(page, 1_000)
  const refusal = await remove(page, ended)
  expect(refusal).toMatchObject({ ok: false, code: 'STORAGE_FULL' })
  expect(refusal.ok ? '' : refusal.message).toMatch(
    /quota is used up\. The room that is kept .* delete files of the site/,
  )
  await setQuota(page)
  expect(await remove(page, ended)).toMatchObject({ ok: true })
  await untilReserved(page)
})

itInFullLane('opens no database where there is no room for one, and opens it later', async () => {
  const page = await visit()
  await setQuota(page, 1_000)
  expect(await migrate(page)).toMatchObject({ ok: false, isOurs: true, code: 'STORAGE_FULL' })
  await setQuota(page)
  expect(await migrate(page)).toMatchObject({ ok: true })
})
