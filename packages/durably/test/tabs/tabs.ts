import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { CDPSession, Page } from 'playwright'
import sqlocal from 'sqlocal/vite'
import { build, preview, type PreviewServer } from 'vite'
import { launchChromium } from './chromium-process'
import type { Settings } from './page/settings'

/** The page that keeps the browser open. */
const BLANK = 'about:blank'

/** What SQLite needs for the file system of the browser. */
const ISOLATED = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
}

/** Tabs of one profile. */
export interface Browser {
  /** Opens a tab in a window of its own, where it is visible; resolves when its instance has started. */
  open(settings: Partial<Settings> & Pick<Settings, 'file'>): Promise<Page>
  /** Puts another tab in front of it. */
  cover(page: Page): Promise<void>
  /** Hides a tab and freezes it, as the browser does with one long out of sight. */
  freeze(page: Page): Promise<void>
  /** Thaws a tab and shows it. */
  thaw(page: Page): Promise<void>
  closeTabs(): Promise<void>
  close(): Promise<void>
}

export async function openBrowser(): Promise<Browser> {
  const folder = mkdtempSync(join(tmpdir(), 'durably-tabs-'))
  const server = await serve(join(folder, 'site'))
  const chromium = await launchChromium(join(folder, 'profile'))
  const base = server.resolvedUrls?.local[0] ?? ''
  const session = await chromium.browser.newBrowserCDPSession()
  const newPage = async () => {
    const opened = chromium.context.waitForEvent('page')
    await session.send('Target.createTarget', { url: BLANK, newWindow: true })
    return opened
  }
  return {
    async open(settings) {
      const page = await newPage()
      const query = new URLSearchParams(Object.entries(settings).map(([name, value]) => [name, String(value)]))
      await page.goto(`${base}?${query}`)
      await page.waitForFunction(() => window.tab !== undefined)
      return page
    },
    async cover(page) {
      await page.bringToFront()
      const [cover] = await Promise.all([chromium.context.waitForEvent('page'), page.evaluate(() => void open(''))])
      await cover.bringToFront()
    },
    freeze: (page) => withSession(page, (own) => own.send('Page.setWebLifecycleState', { state: 'frozen' })),
    async thaw(page) {
      await withSession(page, (own) => own.send('Page.setWebLifecycleState', { state: 'active' }))
      await page.bringToFront()
    },
    async closeTabs() {
      for (const page of chromium.context.pages()) if (page.url() !== BLANK) await page.close()
    },
    async close() {
      await chromium.close()
      await server.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Built: the client of the dev server loads a tab again that was frozen for long. */
async function serve(outDir: string): Promise<PreviewServer> {
  const shared = { configFile: false, root: join(import.meta.dirname, 'page'), logLevel: 'error' } as const
  await build({
    ...shared,
    plugins: [sqlocal()],
    resolve: { conditions: ['@coji/durably-source', 'module', 'browser', 'development|production'] },
    build: { outDir, target: 'es2022', rolldownOptions: { input: [join(shared.root, 'index.html')] } },
  })
  return preview({ ...shared, build: { outDir }, preview: { host: '127.0.0.1', port: 0, headers: ISOLATED } })
}

async function withSession(page: Page, use: (session: CDPSession) => Promise<unknown>): Promise<void> {
  const session = await page.context().newCDPSession(page)
  await use(session)
  await session.detach()
}
