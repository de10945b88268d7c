import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright'
import { expect, inject } from 'vitest'
import type { HandlerOptions } from '@coji/durably-server'
import { chromiumOptions } from '../../../test/chromium'
import { afterEachFile } from '../../../test/leftovers'
import { PATIENCE_MS } from '../../../test/pace'
import { openSite, type Site } from './dashboard-site'

export interface OpenDashboard<TSite = Site> {
  readonly page: Page
  readonly site: TSite
  /** What the console says that it should not. */
  readonly complaints: string[]
  open(path: string): Promise<void>
}

/** One for all tests of a file. */
let browser: Promise<Browser> | null = null

afterEachFile(async () => {
  const used = browser
  browser = null
  await (await used)?.close()
})

export interface DashboardOptions {
  readonly handler?: HandlerOptions
  readonly context?: BrowserContextOptions
}

/** Runs `use` with a dashboard on an instance of its own, and demands that the console stays empty. */
export async function withDashboard(
  use: (dashboard: OpenDashboard) => Promise<void>,
  { handler, context }: DashboardOptions = {},
): Promise<void> {
  await withPageOf(await openSite(inject('assets'), handler), use, context)
}

/** The same with the page of any site, which is closed at the end. */
export async function withPageOf<TSite extends Pick<Site, 'url' | 'close'>>(
  site: TSite,
  use: (dashboard: OpenDashboard<TSite>) => Promise<void>,
  options?: BrowserContextOptions,
): Promise<void> {
  browser ??= chromium.launch(chromiumOptions())
  const context = await (await browser).newContext(options)
  context.setDefaultTimeout(PATIENCE_MS)
  try {
    const page = await context.newPage()
    const complaints = complaintsOf(page)
    const open = async (path: string) => {
      await page.goto(site.url + path)
    }
    await use({ page, site, complaints, open })
    expect(complaints).toEqual([])
  } finally {
    await context.close()
    await site.close()
  }
}

function complaintsOf(page: Page): string[] {
  const complaints: string[] = []
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(`uncaught: ${error.message}`))
  return complaints
}

export const button = (page: Page, name: string | RegExp) => page.getByRole('button', { name, exact: true })
export const rows = (page: Page) => page.getByRole('list', { name: 'Runs' }).getByRole('listitem')
