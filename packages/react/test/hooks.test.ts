import { type Browser, chromium, type Page } from 'playwright'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { chromiumOptions } from '../../../test/chromium'
import { PATIENCE_MS } from '../../../test/pace'
import { expectAllDescribed } from '../../server/test/described'
import type { Shown } from './page/app'
import { closeGate, openGate } from './page/jobs'
import { renderPage } from './page/server'
import { serveSite, type Site } from './site'

let browser: Browser
let site: Site
let rendered = ''

beforeAll(async () => {
  rendered = await renderPage()
  site = await serveSite(rendered)
  browser = await chromium.launch(chromiumOptions())
})

afterAll(async () => {
  await browser?.close()
  await site?.close()
})

afterEach(expectAllDescribed)

/** Where the hooks find their runs, and where the bodies of these wait at gates. */
interface Side {
  readonly path: string
  closeGate(page: Page, name: string): Promise<void>
  openGate(page: Page, name: string): Promise<void>
  /** What the browser itself says of a request that was refused. */
  readonly refusals: readonly string[]
}

const SIDES: Readonly<Record<string, Side>> = {
  'an instance in the tab': {
    path: '/',
    closeGate: (page, name) => page.evaluate(`closeGate('${name}')`),
    openGate: (page, name) => page.evaluate(`openGate('${name}')`),
    refusals: [],
  },
  'a client over HTTP': {
    path: '/over-http',
    closeGate: async (_page, name) => closeGate(name),
    openGate: async (_page, name) => openGate(name),
    refusals: [expect.stringContaining('status of 422')],
  },
}

async function open(path: string): Promise<{ readonly page: Page; readonly complaints: readonly string[] }> {
  await site.forgetRuns()
  const page = await browser.newPage()
  page.setDefaultTimeout(PATIENCE_MS)
  const complaints: string[] = []
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(error.message))
  await page.goto(site.url + path)
  return { page, complaints }
}

const one = (page: Page) => page.getByRole('region', { name: 'One', exact: true })
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
const followed = (page: Page) => page.evaluate<{ now: number; ever: number }>('followed')

describe.each(Object.entries(SIDES))('on %s', (_name, side) => {
  test('in StrictMode a run is triggered, followed once and shown to its end by all who show it', async () => {
    const { page, complaints } = await open(side.path)
    await side.closeGate(page, 'look up')
    await side.closeGate(page, 'greeting')
    await press(page, 'Greet')
    await one(page).getByText('look up running').waitFor()
    await one(page).getByText('Status: running, live').waitFor()
    await one(page).getByText('greets Mia').waitFor()
    await page.getByText('1 runs').waitFor()
    await side.openGate(page, 'look up')
    for (const text of ['Text: Hello', 'Stream: Hello', 'Progress: 1', 'greeting running', 'look up completed']) {
      await one(page).getByText(text).waitFor()
    }
    await side.openGate(page, 'greeting')
    for (const label of ['One', 'Another']) {
      const panel = page.getByRole('region', { name: label, exact: true })
      for (const text of ['Status: completed', 'Text: Hello Mia', 'Words: 2']) await panel.getByText(text).waitFor()
    }
    expect((await followed(page)).ever).toBe(1)
    const renders = await page.evaluate<Shown[]>('renders')
    const ends = renders.filter(({ status }) => status === 'completed')
    expect(ends.length).toBeGreaterThan(0)
    for (const end of ends) {
      expect(end).toEqual({
        status: 'completed',
        text: 'Hello Mia',
        words: 2,
        steps: ['look up completed', 'greeting completed'],
      })
    }
    expect(complaints).toEqual([])
    await page.close()
  })

  test('nothing is followed any more when nobody shows it, and what was known is there at once when somebody does', async () => {
    const { page, complaints } = await open(side.path)
    await side.closeGate(page, 'greeting')
    await press(page, 'Greet')
    await one(page).getByText('Status: running, live').waitFor()
    await press(page, 'Close')
    await expect.poll(async () => (await followed(page)).now).toBe(0)
    await press(page, 'Open')
    await page.getByText('1 runs').waitFor()
    expect(complaints).toEqual([])
    await page.close()
  })

  test('a refused trigger says why, and the run before stays', async () => {
    const { page, complaints } = await open(side.path)
    await press(page, 'Greet')
    await one(page).getByText('Status: completed').waitFor()
    await press(page, 'Greet nobody')
    await page.getByLabel('Refusal').getByText('payload of job "greet"').waitFor()
    expect(await one(page).getByText('Status: completed').isVisible()).toBe(true)
    await press(page, 'Greet')
    await expect.poll(() => page.getByLabel('Refusal').textContent()).toBe('')
    for (let more = 0; more < 2; more++) await press(page, 'Greet')
    await page.getByText('2 runs and more').waitFor()
    await press(page, 'More')
    await page.getByText('4 runs').waitFor()
    expect(complaints).toEqual(side.refusals)
    await page.close()
  })
})

test('a server shows the run that it has read, and the page takes over without a word', async () => {
  expect(rendered).toContain('Status: running')
  expect(rendered).toContain('Loading')
  const { page, complaints } = await open('/hydrated')
  // The instance of this page has never heard of that run.
  await one(page).getByText('Status: null').waitFor()
  expect(await page.evaluate<string[]>('complaints')).toEqual([])
  const renders = await page.evaluate<Shown[]>('renders')
  expect(renders[0]?.status).toBe('running')
  await press(page, 'Greet')
  await one(page).getByText('Status: completed').waitFor()
  expect(complaints).toEqual([])
  await page.close()
})
