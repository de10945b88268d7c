import { chromium, type Browser, type BrowserContext, type Page } from 'playwright'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { chromiumOptions } from '../../../../test/chromium'
import type { Answer } from './page-api'
import { buildPage, ISOLATED, type PageServer, removePage, servePage } from './page-server'
import { itInFullLane } from '../../../../test/full-lane'

const CONFIG = { databasePath: 'jobs.sqlite3' }

let folder = ''
let server: PageServer
let browser: Browser
let context: BrowserContext
let page: Page

beforeAll(async () => {
  folder = await buildPage()
  server = await servePage({ folder, headers: ISOLATED })
  browser = await chromium.launch(chromiumOptions())
})

afterAll(async () => {
  await browser.close()
  await server.close()
  removePage(folder)
})

beforeEach(async () => {
  context = await browser.newContext()
  page = await context.newPage()
  await page.goto(`http://127.0.0.1:${server.port}/`)
  await page.waitForFunction(() => 'api' in window)
  expect(await migrate()).toMatchObject({ ok: true })
})

afterEach(() => context.close())

const migrate = () => page.evaluate((config) => window.api.migrate(config), CONFIG)
const trigger = () => page.evaluate(() => window.api.trigger('a'))
const run = () => page.evaluate(() => window.api.run('hello'))
const codeOf = (answer: Answer) => (answer.ok ? null : answer.code)

/** As the person does who clears the data of the site, or the browser that wants the space. */
async function clearSiteData(): Promise<void> {
  const cdp = await context.newCDPSession(page)
  const { origin } = new URL(page.url())
  await cdp.send('Storage.clearDataForOrigin', { origin, storageTypes: 'all' })
}

itInFullLane(
  'a page whose data is cleared hears that its file is gone, and begins an empty one when it migrates',
  async () => {
    expect(await trigger()).toMatchObject({ ok: true })
    await clearSiteData()
    const refusal = await trigger()
    expect(refusal).toMatchObject({ ok: false, code: 'STORAGE_CANNOT_OPEN', isOurs: true })
    expect(refusal.ok ? '' : refusal.message).toMatch(/is gone.*data of this site was cleared.*migrate\(\)/)
    expect(codeOf(await trigger())).toBe('NOT_MIGRATED')
    expect(await migrate()).toMatchObject({ ok: true })
    expect(await page.evaluate(() => window.api.runs())).toMatchObject({ ok: true, value: [] })
    expect(await run()).toMatchObject({ ok: true, value: 5 })
  },
)

it('a page that works while its data is cleared hears the same of its worker, and never of a held connection', async () => {
  expect(await run()).toMatchObject({ ok: true })
  await clearSiteData()
  await page.waitForFunction(() => window.api.troubles().includes('STORAGE_CANNOT_OPEN'))
  const calls = await page.evaluate(() => Promise.all(['a', 'b', 'c'].map((text) => window.api.trigger(text))))
  expect(new Set(calls.map(codeOf))).toEqual(new Set(['NOT_MIGRATED']))
  expect(await migrate()).toMatchObject({ ok: true })
  expect(await run()).toMatchObject({ ok: true, value: 5 })
  const troubles = await page.evaluate(() => window.api.troubles())
  // On a slow machine an answer may take longer than it is waited for.
  const known = ['STORAGE_CANNOT_OPEN', 'NOT_MIGRATED', 'STORAGE_UNAVAILABLE']
  expect([...new Set(troubles)].filter((code) => !known.includes(code))).toEqual([])
})
