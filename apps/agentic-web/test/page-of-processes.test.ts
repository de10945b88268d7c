import { chromium } from 'playwright'
import { expect, it, onTestFinished } from 'vitest'
import { chromiumOptions } from '../../../test/chromium'
import { SCALE } from '../../../test/scale'
import { freePort } from '../src/local/free-port'
import { answer, button, say, signIn, textOf, withTabs } from '../web/test/chat-site'
import { startProcesses } from './processes'

/** All at once, so that who reads the answer is at one of them. */
const DEATHS = [['worker-1', 'worker-2'], ['api-1', 'api-2'], ['web-1']]

it.runIf(SCALE === 'full').each(['runs', 'chat'])(
  '14.5: by the contract of %s, the page shows answers whole whose processes are killed',
  async (contract) => {
    const port = String(await freePort())
    const url = `http://localhost:${port}`
    const processes = await startProcesses({ hasPage: true, given: { WEB_PORT: port }, own: { DEMO_WORD_MS: '5' } })
    const browser = await chromium.launch(chromiumOptions())
    onTestFinished(async () => {
      await browser.close()
      await processes.end()
    })
    await withTabs({ browser, url }, async ({ open, complaints }) => {
      const page = await open(`/?contract=${contract}`)
      await signIn(page)
      for (const names of DEATHS) {
        await say(page, 'write 200 words')
        await expect.poll(() => textOf(answer(page))).toContain('word-20 ')
        for (const name of names) await processes.kill(name)
        await expect.poll(() => textOf(answer(page))).toMatch(/^word-1 .* word-200$/)
        await button(page, 'Stop').waitFor({ state: 'detached' })
        await Promise.all(names.map((name) => processes.ready(name)))
      }
      await say(page, 'note: buy milk')
      await button(page, 'Approve').click()
      await expect.poll(() => textOf(answer(page).last())).toContain('"written":9')
      await page.reload()
      await expect.poll(() => textOf(answer(page).last())).toContain('"written":9')
      expect(await page.locator('.run').count()).toBe(DEATHS.length + 1)
      // What was being answered when its server was killed.
      expect(complaints.splice(0).filter((text) => !text.includes('status of 500'))).toEqual([])
    })
  },
)
