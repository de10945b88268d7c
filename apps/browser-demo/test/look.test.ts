import type { Page } from 'playwright'
import { describe, expect, test } from 'vitest'
import { contrasts } from './contrast'
import { finishedRun, importSample, newRun, recordedSteps, runIds } from './demo-page'
import { withDemo } from './with-demo'

/** A completed and a failed run; the page shows the one named last. */
async function showSomething(page: Page): Promise<void> {
  await finishedRun(page, await importSample(page))
  await dropNonsense(page)
}

async function dropNonsense(page: Page): Promise<void> {
  const before = await runIds(page)
  const file = { name: 'cats.csv', mimeType: 'text/csv', buffer: Buffer.from('name,colour\r\nMia,red\r\n') }
  await page.getByLabel('Drop a CSV of orders').setInputFiles(file)
  await finishedRun(page, await newRun(page, before))
}

async function hardToRead(page: Page): Promise<string[]> {
  const texts = await contrasts(page)
  expect(texts.length).toBeGreaterThan(20)
  return texts
    .filter(({ contrast, isLarge }) => contrast < (isLarge ? 3 : 4.5))
    .map(({ text, contrast }) => `${contrast.toFixed(2)}: ${text}`)
}

test('is easy to read, in the light and in the dark', () =>
  withDemo(async ({ page }) => {
    await showSomething(page)
    const items = page.getByRole('list', { name: 'Runs' }).getByRole('button')
    const backgrounds = new Set<string>()
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      backgrounds.add(await page.evaluate(() => getComputedStyle(document.body).backgroundColor))
      for (const status of ['failed', 'completed']) {
        await items.filter({ hasText: status }).click()
        await page.getByRole('region', { name: /^Run / }).getByText(status, { exact: true }).first().waitFor()
        expect(await hardToRead(page), `${colorScheme}, ${status}`).toEqual([])
      }
    }
    expect(backgrounds.size).toBe(2)
  }))

describe('on a phone of 360 px', () => {
  const phone = { viewport: { width: 360, height: 740 }, hasTouch: true }
  const width = (page: Page) => page.evaluate(() => document.documentElement.scrollWidth)

  test('nothing has to be scrolled sideways', () =>
    withDemo(async ({ page }) => {
      expect(await width(page)).toBeLessThanOrEqual(360)
      const id = await importSample(page)
      await recordedSteps(page, id, 5)
      await page.getByRole('region', { name: 'Steps' }).getByText('rows 1-1000').first().waitFor()
      expect(await width(page)).toBeLessThanOrEqual(360)
      await finishedRun(page, id)
      await page.getByRole('list', { name: 'Runs' }).getByText('completed').first().waitFor()
      expect(await width(page)).toBeLessThanOrEqual(360)
      await dropNonsense(page)
      await page.getByText('has the columns').first().waitFor()
      expect(await width(page)).toBeLessThanOrEqual(360)
    }, phone))
})
