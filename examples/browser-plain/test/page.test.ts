import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium, type BrowserContext, type Page } from 'playwright'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { paced, PATIENCE_MS } from '../../../test/pace'
import { chromiumOptions } from '../../../test/chromium'
import { startServer, type ExampleServer } from './server'
import { itInFullLane } from '../../../test/full-lane'

/** Long enough to meet a run in its middle, and what the form takes: steps of 50, and 5000 at most. */
const STEP_MS = Math.min(5000, Math.ceil(paced(1000) / 50) * 50)

let server: ExampleServer
let profile = ''
let context: BrowserContext
let page: Page
const said: string[] = []
const complaints: string[] = []

beforeEach(async () => {
  server = await startServer()
  profile = mkdtempSync(join(tmpdir(), 'durably-browser-plain-'))
  context = await chromium.launchPersistentContext(profile, chromiumOptions())
  context.setDefaultTimeout(PATIENCE_MS)
  said.length = 0
  complaints.length = 0
  page = await newTab()
})

afterEach(async () => {
  await context.close()
  await server.close()
  rmSync(profile, { recursive: true, force: true })
})

async function newTab(): Promise<Page> {
  const tab = await context.newPage()
  tab.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text())
    else said.push(message.text())
  })
  tab.on('pageerror', (error) => complaints.push(String(error)))
  tab.on('requestfailed', (request) => complaints.push(`${request.url()} failed`))
  return tab
}

async function ready(tab: Page): Promise<void> {
  await tab.goto(server.url)
  await tab.getByText('Ready.').waitFor()
}

async function startRun(pause: number): Promise<void> {
  await page.getByLabel('Milliseconds a step').fill(String(pause))
  await page.getByRole('button', { name: 'Start a run' }).click()
}

function stepsSaid(): readonly string[] {
  return said.map((line) => /step \d+$/.exec(line)?.[0]).filter((step) => step !== undefined)
}

/** What a host that does not know of isolation would answer. */
async function withoutHeaders(tab: Page): Promise<void> {
  await tab.route('**/*', async (route) => {
    const response = await route.fetch()
    const headers = Object.entries(response.headers()).filter(([name]) => !name.startsWith('cross-origin-'))
    await route.fulfill({ response, headers: Object.fromEntries(headers) })
  })
}

describe('the page without a bundler', () => {
  it('goes on after a reload in the middle of a run, and does no finished step again', async () => {
    await ready(page)
    await startRun(STEP_MS)
    await page.locator('#runs .done').nth(2).waitFor()
    await page.getByRole('button', { name: 'Kill this page' }).click()
    await page.getByText('This is visit 2.').waitFor()
    await page.locator('#runs [data-status="completed"]').waitFor()

    const visits = await page.locator('#runs .done').allTextContents()
    const ofTheFirst = visits.filter((visit) => visit === '1').length
    expect(visits).toEqual([...'1'.repeat(ofTheFirst), ...'2'.repeat(10 - ofTheFirst)])
    expect(ofTheFirst).toBeGreaterThanOrEqual(3)
    expect(ofTheFirst).toBeLessThan(10)
    // Twice only the one that the reload interrupted.
    const names = stepsSaid()
    expect(new Set(names).size).toBe(10)
    expect(names.length).toBeLessThanOrEqual(11)
    expect(names.slice(0, ofTheFirst)).toEqual(Array.from({ length: ofTheFirst }, (_, index) => `step ${index + 1}`))
    expect(names.slice(ofTheFirst + 1)).not.toContain(`step ${ofTheFirst}`)
    expect(complaints).toEqual([])
  })

  itInFullLane(
    'shows in every tab what one of them executes, and goes on in another when that one closes',
    async () => {
      await ready(page)
      const other = await newTab()
      await ready(other)
      await startRun(STEP_MS)
      await other.locator('#runs .done').nth(2).waitFor()
      await page.close()
      await other.locator('#runs [data-status="completed"]').waitFor()
      const visits = await other.locator('#runs .done').allTextContents()
      expect(visits).toEqual([...visits].sort())
      expect(new Set(visits)).toEqual(new Set(['1', '2']))
      expect(complaints).toEqual([])
    },
  )

  it('shows why a run has failed', async () => {
    await page.addInitScript(() => {
      const { info } = console
      console.info = (line: string) => {
        if (line.endsWith('step 3')) throw new Error('Out of luck in step 3.')
        info(line)
      }
    })
    await ready(page)
    await startRun(50)
    const failed = page.locator('#runs [data-status="failed"]')
    await failed.getByText('Out of luck in step 3.').waitFor()
    expect(await failed.locator('.done').count()).toBe(2)
    expect(complaints).toEqual([])
  })

  itInFullLane('shows which headers are missing, where they are', async () => {
    await withoutHeaders(page)
    await page.goto(server.url)
    const message = page.getByRole('status')
    await message.filter({ hasText: 'Cross-Origin-Opener-Policy: same-origin' }).waitFor()
    await message.filter({ hasText: 'Cross-Origin-Embedder-Policy: require-corp' }).waitFor()
    expect(await page.getByRole('button', { name: 'Start a run' }).isDisabled()).toBe(true)
  })

  itInFullLane('fits a phone, in the dark, and is used by keyboard', async () => {
    await page.setViewportSize({ width: 320, height: 640 })
    await page.emulateMedia({ colorScheme: 'dark' })
    await ready(page)
    await page.getByLabel('Milliseconds a step').focus()
    await page.keyboard.press('Enter')
    await page.locator('#runs [data-status]').waitFor()
    const { width, background } = await page.evaluate(() => ({
      width: document.documentElement.scrollWidth,
      background: getComputedStyle(document.body).backgroundColor,
    }))
    expect(width).toBeLessThanOrEqual(320)
    expect(background).toBe('rgb(24, 24, 27)')
    await page.keyboard.press('Tab')
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('Start a run')
    expect(complaints).toEqual([])
  })
})
