import type { BrowserContext, Page } from 'playwright'
import { expect, inject, test } from 'vitest'
import { finishedRun, importRows, openTab, statusOf } from './demo-page'
import { withBrowser } from './profile'
import { checkSampleImport } from './sample'

const ROWS = 10_000
const PART = 'orders-00007.jsonl'

/** Calls back when the seventh part of an import is written, before its step is recorded. */
async function whenPartIsWritten(context: BrowserContext, onWritten: (page: Page) => Promise<void>): Promise<void> {
  await context.exposeBinding('partIsWritten', ({ page }) => onWritten(page))
  await context.addInitScript((name) => {
    const { createWritable } = FileSystemFileHandle.prototype
    FileSystemFileHandle.prototype.createWritable = async function (this: FileSystemFileHandle, options) {
      const writable = await createWritable.call(this, options)
      if (this.name !== name) return writable
      const close = writable.close.bind(writable)
      const isWritten: () => Promise<void> = Reflect.get(window, 'partIsWritten')
      writable.close = async () => {
        await close()
        await isWritten()
      }
      return writable
    }
  }, PART)
}

/** Gives the site this much space; without a number, what the browser gives everybody. */
async function setQuota(page: Page, quotaSize?: number): Promise<void> {
  const cdp = await page.context().newCDPSession(page)
  const { origin } = new URL(page.url())
  await cdp.send('Storage.overrideQuotaForOrigin', { origin, ...(quotaSize !== undefined && { quotaSize }) })
}

test('a full storage is shown, and the import goes on when there is room', () =>
  withBrowser(async (context) => {
    let timesWritten = 0
    await whenPartIsWritten(context, async (page) => {
      timesWritten += 1
      await setQuota(page, 1_000)
    })
    const { page, complaints } = await openTab(context, inject('demoUrl'))
    const id = await importRows(page, ROWS)
    const alert = page.getByRole('alert').filter({ hasText: 'The storage is full' })
    await alert.waitFor()
    expect(await alert.textContent()).toMatch(/durably-demo\.sqlite3: .* quota is used up\. Delete runs or files/)
    expect(await statusOf(page, id)).toBe('running')
    await page.getByRole('list', { name: 'Runs' }).getByRole('button').filter({ hasText: 'running' }).waitFor()

    await setQuota(page)
    const run = await finishedRun(page, id)
    expect(checkSampleImport(run, ROWS)).toEqual([])
    expect(timesWritten).toBe(1)
    await page.getByRole('list', { name: 'Runs' }).getByRole('button').filter({ hasText: 'completed' }).waitFor()
    await alert.getByRole('button', { name: 'Dismiss' }).click()
    await alert.waitFor({ state: 'detached' })
    expect(complaints.filter((complaint) => complaint.startsWith('uncaught'))).toEqual([])
  }))
