import type { Page } from 'playwright'
import { expect, test } from 'vitest'
import { finishedRun, importRows, importSample, newRun, openTab, recordedSteps, runIds, statusOf } from './demo-page'
import { partOf } from './judge'
import { tabTo } from './keyboard'
import { checkSampleImport } from './sample'
import { withDemo } from './with-demo'
import { itInFullLane } from '../../../test/full-lane'

const LONG = 10_000
/** Where an import is met: what it has to do until then is recorded, and it goes no further. */
const MIDDLE = 6

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
const detailOf = (page: Page, id: string) => page.getByRole('region', { name: `Run ${id}` })
const items = (page: Page) => page.getByRole('list', { name: 'Runs' }).getByRole('button')

test('starts, opens, cancels, retries and deletes a run by keyboard alone', () =>
  withDemo(async ({ page, witness }) => {
    const press = async (name: RegExp) => {
      await tabTo(page, name)
      await page.keyboard.press('Enter')
    }
    let letGo = witness.hold({ page, part: 2 })
    await press(/^Import sample$/)
    const id = await newRun(page, [])
    await items(page).first().waitFor()
    await press(/^import-csv/)
    await detailOf(page, id).waitFor()
    await press(/^Cancel$/)
    letGo()
    await detailOf(page, id).getByText('cancelled', { exact: true }).first().waitFor()
    expect(await statusOf(page, id)).toBe('cancelled')
    letGo = witness.hold({ page, part: 2 })
    await press(/^Retry$/)
    await button(page, 'Cancel').waitFor()
    await press(/^Cancel$/)
    letGo()
    await button(page, 'Delete').waitFor()
    await press(/^Delete$/)
    await press(/^Yes, delete$/)
    await expect.poll(() => items(page).count()).toBe(0)
    expect(await runIds(page)).toEqual([])
  }))

itInFullLane('a cancelled import goes on when it is retried, with the steps it has', () =>
  withDemo(async ({ page, witness }) => {
    const { seen } = witness
    const letGo = witness.hold({ page, part: MIDDLE })
    const id = await importRows(page, LONG)
    await recordedSteps(page, id, 5)
    await button(page, 'Cancel').click()
    letGo()
    const cancelled = await finishedRun(page, id)
    expect(cancelled.status).toBe('cancelled')
    await items(page).filter({ hasText: 'cancelled' }).waitFor()
    const recorded = cancelled.steps.map(({ name }) => partOf(name)).filter((part) => part !== null)
    await button(page, 'Retry').click()
    await expect.poll(() => statusOf(page, id)).not.toBe('cancelled')
    const retried = await finishedRun(page, id)
    expect(checkSampleImport(retried, LONG)).toEqual([])
    const again = recorded.filter((number) => seen.filter(({ part }) => part === number).length > 1)
    expect(recorded.length).toBeGreaterThan(3)
    expect(again).toEqual([])
    await button(page, 'Delete').click()
    await button(page, 'Yes, delete').click()
    await expect.poll(() => runIds(page)).toEqual([])
    await detailOf(page, id).waitFor({ state: 'detached' })
  }),
)

itInFullLane('a worker killed without a farewell is back after the reload, and says what it skipped', () =>
  withDemo(async ({ page, witness }) => {
    const { seen } = witness
    const letGo = witness.hold({ page, part: MIDDLE })
    const id = await importRows(page, LONG)
    await recordedSteps(page, id, 5)
    await page.evaluate(() => {
      const takeLeave = ({ type }: Event) => localStorage.setItem('farewell', type)
      for (const type of ['beforeunload', 'pagehide', 'visibilitychange']) {
        addEventListener(type, takeLeave)
        document.addEventListener(type, takeLeave)
      }
    })
    await Promise.all([page.waitForEvent('load'), button(page, "Kill this tab's worker").click()])
    letGo()
    expect(await page.evaluate(() => localStorage.getItem('farewell'))).toBe(null)
    const text = await page.getByText(/Resumed: \d+ steps were skipped/).textContent()
    const skipped = Number(/\d+/.exec(text ?? '')?.[0])
    const run = await finishedRun(page, id)
    expect(checkSampleImport(run, LONG)).toEqual([])
    const [firstEpoch = 0] = run.steps.map(({ leaseEpoch }) => leaseEpoch)
    const recorded = run.steps.filter(({ leaseEpoch }) => leaseEpoch === firstEpoch).map(({ name }) => partOf(name))
    expect(recorded.length).toBeGreaterThanOrEqual(5)
    expect(recorded.length).toBeLessThan(run.steps.length)
    expect(skipped).toBe(recorded.length)
    const again = recorded.filter((number) => seen.filter(({ part }) => part === number).length > 1)
    expect(again).toEqual([])
    await detailOf(page, id).getByText('completed', { exact: true }).first().waitFor()
  }),
)

itInFullLane('a dropped file that is no list of orders makes a failed run that says so', () =>
  withDemo(async ({ page }) => {
    const transfer = await page.evaluateHandle(() => {
      const data = new DataTransfer()
      data.items.add(new File(['name,colour\r\nMia,red\r\n'], 'cats.csv', { type: 'text/csv' }))
      return data
    })
    await page.getByText('Drop a CSV of orders').dispatchEvent('drop', { dataTransfer: transfer })
    const id = await newRun(page, [])
    expect((await finishedRun(page, id)).status).toBe('failed')
    await detailOf(page, id).getByText('has the columns "name,colour", expected "').first().waitFor()
    await items(page).filter({ hasText: 'failed' }).waitFor()
  }),
)

test('a chosen file is imported', () =>
  withDemo(async ({ page }) => {
    const lines = [
      'order,ordered_on,customer,category,quantity,unit_price,note',
      'A-1,2026-01-02,C-1,books,2,"1,000.50",fine',
      'A-2,2026-02-30,C-1,books,1,1.00,no such day',
    ]
    const file = { name: 'orders.csv', mimeType: 'text/csv', buffer: Buffer.from(lines.join('\r\n')) }
    await page.getByLabel('Drop a CSV of orders').setInputFiles(file)
    const run = await finishedRun(page, await newRun(page, []))
    expect(run.error).toBe(null)
    expect(run.output).toMatchObject({ rows: 2, accepted: 1, rejected: { date: 1 } })
  }))

itInFullLane('a second tab leaves the work to the first, and sees it', () =>
  withDemo(async ({ page, context }) => {
    await page.getByText('This tab runs the jobs').waitFor()
    const second = await openTab(context, page.url())
    await second.page.getByText('Another tab runs the jobs').waitFor()
    expect(await button(second.page, "Kill this tab's worker").isDisabled()).toBe(true)
    const id = await importSample(second.page)
    for (const tab of [page, second.page]) await items(tab).filter({ hasText: 'completed' }).waitFor()
    expect(checkSampleImport(await finishedRun(second.page, id))).toEqual([])
    expect(second.complaints).toEqual([])
  }),
)
