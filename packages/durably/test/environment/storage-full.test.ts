import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium, type BrowserContext, type Page } from 'playwright'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { chromiumOptions } from '../../../../test/chromium'
import { reportSuite } from '../../../../test/report'
import type { Answer } from './page-api'
import { buildPage, ISOLATED, type PageServer, removePage, servePage } from './page-server'

const CONFIG = { databasePath: 'jobs.sqlite3' }
const QUOTA = 4_000_000
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

it('refuses a write that the storage has no room for, keeps the rest, and goes on when there is room', async () => {
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
})

it('does not fail a run that meets a full storage, and goes on with it when there is room', async () => {
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
  expect(new Set(await page.evaluate(() => window.api.troubles()))).toEqual(new Set(['STORAGE_FULL']))
})

it('opens no database where there is no room for one, and opens it later', async () => {
  const page = await visit()
  await setQuota(page, 1_000)
  expect(await migrate(page)).toMatchObject({ ok: false, isOurs: true, code: 'STORAGE_FULL' })
  await setQuota(page)
  expect(await migrate(page)).toMatchObject({ ok: true })
})
