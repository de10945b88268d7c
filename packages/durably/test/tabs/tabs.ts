import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { CDPSession, Page } from 'playwright'
import { inject } from 'vitest'
import { PATIENCE_MS } from '../../../../test/pace'
import { untilInTab } from './audit'
import { type ChromiumProcess, launchChromium } from './chromium-process'
import type { Settings } from './page/settings'

/** The page that keeps the browser open. */
const BLANK = 'about:blank'

type TabSettings = Partial<Settings> & Pick<Settings, 'file'>

/** Tabs of one profile. */
export interface Browser {
  /** Opens a tab in a window of its own, where it is visible; resolves when its instance has started. */
  open(settings: TabSettings): Promise<Page>
  /** The same, and resolves when it leads: the next one may ask for the lock sooner otherwise. */
  openLeader(settings: TabSettings): Promise<Page>
  /** Puts another tab in front of it. */
  cover(page: Page): Promise<void>
  /** Covers a tab and freezes it, as the browser does with one long out of sight. */
  freeze(page: Page): Promise<void>
  /** Shows a tab, which thaws it. */
  thaw(page: Page): Promise<void>
  /** As F5 does; resolves when the instance of the new page has started. */
  reload(page: Page): Promise<void>
  /** Ends the process of a tab, which hears nothing of it. */
  crash(page: Page): Promise<void>
  closeTabs(): Promise<void>
  close(): Promise<void>
}

/** `isWhole`: one that can hide and freeze a tab, which costs twice as much. */
export async function openBrowser(options: { isWhole?: boolean } = {}): Promise<Browser> {
  const folder = mkdtempSync(join(tmpdir(), 'durably-tabs-'))
  const ends: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })]
  const close = async () => {
    for (const end of ends.splice(0).reverse()) await end()
  }
  try {
    const chromium = await launchChromium(join(folder, 'profile'), options)
    ends.push(() => chromium.close())
    return await browserOf({ chromium, base: inject('tabsUrl'), close })
  } catch (error) {
    await close()
    throw error
  }
}

interface BrowserParams {
  readonly chromium: ChromiumProcess
  /** The address of the page. */
  readonly base: string
  readonly close: () => Promise<void>
}

async function browserOf({ chromium, base, close }: BrowserParams): Promise<Browser> {
  const session = await chromium.browser.newBrowserCDPSession()
  const newPage = async () => {
    const opened = chromium.context.waitForEvent('page')
    await session.send('Target.createTarget', { url: BLANK, newWindow: true })
    return opened
  }
  chromium.context.setDefaultTimeout(PATIENCE_MS)
  const covers = new Set<Page>()
  const cover = async (page: Page) => {
    await page.bringToFront()
    const [front] = await Promise.all([chromium.context.waitForEvent('page'), page.evaluate(() => void open(''))])
    covers.add(front)
    await front.bringToFront()
  }
  const openTab = async (settings: TabSettings) => {
    const page = await newPage()
    const query = new URLSearchParams(Object.entries(settings).map(([name, value]) => [name, String(value)]))
    await page.goto(`${base}?${query}`)
    await page.waitForFunction(() => window.tab !== undefined)
    return page
  }
  return {
    open: openTab,
    async openLeader(settings) {
      const page = await openTab(settings)
      await untilInTab(page, (tab) => tab.isLeader())
      return page
    },
    cover,
    async freeze(page) {
      await cover(page)
      await withSession(page, (own) => own.send('Page.setWebLifecycleState', { state: 'frozen' }))
    },
    // Who is shown is thawed, and hears of both in the same moment.
    thaw: (page) => page.bringToFront(),
    async reload(page) {
      await page.reload()
      await page.waitForFunction(() => window.tab !== undefined)
    },
    async crash(page) {
      const crashed = page.waitForEvent('crash')
      const own = await page.context().newCDPSession(page)
      // Nobody is left to answer.
      own.send('Page.crash').catch(() => {})
      await crashed
    },
    async closeTabs() {
      for (const page of chromium.context.pages()) if (covers.delete(page) || page.url() !== BLANK) await page.close()
    },
    close,
  }
}

async function withSession(page: Page, use: (session: CDPSession) => Promise<unknown>): Promise<void> {
  const session = await page.context().newCDPSession(page)
  await use(session)
  await session.detach()
}
