import { type Browser, chromium, type Page } from 'playwright'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { chromiumOptions } from '../../../test/chromium'
import { PATIENCE_MS } from '../../../test/pace'
import type { Shown } from './page/app'
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

async function open(path = '/'): Promise<{ readonly page: Page; readonly complaints: readonly string[] }> {
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

test('in StrictMode a run is triggered, followed once and shown to its end by all who show it', async () => {
  const { page, complaints } = await open()
  await page.evaluate(`closeGate('look up'); closeGate('greeting')`)
  await press(page, 'Greet')
  await one(page).getByText('look up running').waitFor()
  await one(page).getByText('Status: running, live').waitFor()
  await one(page).getByText('greets Mia').waitFor()
  await page.getByText('1 runs').waitFor()
  await page.evaluate(`openGate('look up')`)
  for (const text of ['Text: Hello', 'Stream: Hello', 'Progress: 1', 'greeting running', 'look up completed']) {
    await one(page).getByText(text).waitFor()
  }
  await page.evaluate(`openGate('greeting')`)
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
  const { page, complaints } = await open()
  await page.evaluate(`closeGate('greeting')`)
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
  const { page, complaints } = await open()
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
  expect(complaints).toEqual([])
  await page.close()
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
