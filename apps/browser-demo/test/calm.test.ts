import type { Durably } from '@coji/durably'
import type { Page } from 'playwright'
import { expect, test } from 'vitest'
import { finishedRun, importRows, importSample, openTab, recordedSteps } from './demo-page'
import { faultsOf, watchPage } from './page-watch'
import { withDemo } from './with-demo'
import { itInFullLane } from '../../../test/full-lane'

const LONG = 10_000
/** Its row is below the first that are shown. */
const LATE = 18

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
const detailOf = (page: Page, id: string) => page.getByRole('region', { name: `Run ${id}` })
const resumed = (page: Page) => page.getByText(/Resumed: \d+ steps were skipped/)

itInFullLane(
  'no row goes away, and list, detail and worker tell the same, in the tab that works and in one that looks on',
  () =>
    withDemo(async ({ page, context }) => {
      const { page: second } = await openTab(context, page.url())
      for (const each of [page, second]) await watchPage(each)
      const id = await importSample(page)
      await second.evaluate((runId) => location.assign(`#run=${runId}`), id)
      await finishedRun(page, id)
      for (const each of [page, second]) {
        await detailOf(each, id).getByRole('region', { name: 'Result' }).waitFor()
        expect(await faultsOf(each)).toEqual([])
      }
    }),
)

test('what the page says of its worker is true from the first moment of each load', () =>
  withDemo(async ({ page }) => {
    await watchPage(page)
    for (let load = 0; load < 5; load++) {
      await page.getByText('This tab runs the jobs').waitFor()
      expect(await faultsOf(page)).toEqual([])
      await page.reload()
    }
  }))

itInFullLane('a run that was interrupted opens where it was, and says what was skipped on no other run', () =>
  withDemo(async ({ page, witness }) => {
    const other = await importRows(page, 1_000)
    await finishedRun(page, other)
    witness.hold({ page, part: LATE })
    const id = await importRows(page, 2 * LONG)
    await recordedSteps(page, id, LATE)
    await Promise.all([page.waitForEvent('load'), button(page, "Kill this tab's worker").click()])
    await resumed(page).waitFor()
    witness.letAllGo()
    await finishedRun(page, id)
    await page.goto(`${new URL(page.url()).origin}/#run=${other}`)
    await detailOf(page, other).getByRole('region', { name: 'Result' }).waitFor()
    expect(await resumed(page).count()).toBe(0)
    await page.goto(`${new URL(page.url()).origin}/#run=${id}`)
    await detailOf(page, id).getByRole('region', { name: 'Result' }).waitFor()
    await resumed(page).waitFor()
    const isSeen = await page.locator('.chart-row', { hasText: 'rows 17001-18000' }).evaluate((row) => {
      const chart = row.closest('.chart')?.getBoundingClientRect()
      const { top, bottom } = row.getBoundingClientRect()
      return chart !== undefined && top > chart.top && bottom < chart.bottom
    })
    expect(isSeen).toBe(true)
  }),
)

itInFullLane('the focus stays near when what had it is gone', () =>
  withDemo(async ({ page, witness }) => {
    const focused = () =>
      page.evaluate(() => document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.id ?? '')
    const press = async (name: string) => {
      await button(page, name).first().focus()
      await page.keyboard.press('Enter')
      await button(page, name).first().waitFor({ state: 'detached' })
    }
    witness.hold({ page, part: 2 })
    const id = await importRows(page, LONG)
    await detailOf(page, id).waitFor()
    await press('Cancel')
    await expect.poll(focused).toBe('Actions')
    witness.letAllGo()
    await button(page, 'Retry').waitFor()
    expect(await focused()).toBe('Actions')
    witness.hold({ page, part: 2 })
    await press('Retry')
    await expect.poll(focused).toBe('Actions')
    witness.letAllGo()
    await finishedRun(page, id)
    await page.evaluate(() => {
      const durably: Durably = Reflect.get(window, 'durably')
      for (const code of ['STORAGE_FULL', 'STORAGE_CANNOT_OPEN'] as const) {
        durably.emit({ type: 'worker:error', workerId: '', during: 'commit', code, error: 'as told' })
      }
    })
    const dismiss = page.getByRole('alert').getByRole('button', { name: 'Dismiss' })
    await expect.poll(() => dismiss.count()).toBe(2)
    await dismiss.first().focus()
    await page.keyboard.press('Enter')
    await expect.poll(() => dismiss.count()).toBe(1)
    expect(await dismiss.evaluate((each) => each === document.activeElement)).toBe(true)
    await page.keyboard.press('Enter')
    await expect.poll(() => dismiss.count()).toBe(0)
    expect(await focused()).toBe('detail')
  }),
)
