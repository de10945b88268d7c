import { expect, inject, test } from 'vitest'
import { complaintsOf, finishedRun, importSample } from './demo-page'
import { servePlainly } from './plain-host'
import { withBrowser } from './profile'
import { checkSampleImport } from './sample'

test('without the headers there is one clear message, and memory for those who ask for it', async () => {
  const site = await servePlainly(inject('demoFolder'))
  try {
    await withBrowser(async (context) => {
      const page = await context.newPage()
      const complaints = complaintsOf(page)
      await page.goto(site.url)
      const alert = page.getByRole('alert')
      await alert.waitFor()
      expect(await alert.count()).toBe(1)
      expect(await alert.textContent()).toMatch(/Cross-Origin-Opener-Policy/)
      expect(await page.getByRole('button', { name: 'Import sample' }).isVisible()).toBe(false)
      await page.setViewportSize({ width: 360, height: 740 })
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360)
      expect(complaints).toEqual([])
      await page.getByRole('button', { name: 'Go on in memory' }).click()
      await page.getByText('In memory', { exact: true }).waitFor()
      await page.getByText('Nothing is kept here').waitFor()
      expect(await page.getByRole('button', { name: /^Kill/ }).count()).toBe(0)
      const run = await finishedRun(page, await importSample(page))
      expect(checkSampleImport(run)).toEqual([])
      // SQLite tells the developer that it has no file, which the person has just agreed to.
      expect(complaints.filter((complaint) => !complaint.includes('inability to install OPFS'))).toEqual([])
    })
  } finally {
    await site.close()
  }
})
