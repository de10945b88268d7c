import type { Durably } from '@coji/durably'
import type { Page } from 'playwright'
import { inject } from 'vitest'
import { finishedRun, importRows, importSample, newRun, openTab, recordedSteps, runIds } from './demo-page'
import { servePlainly } from './plain-host'
import type { OpenDemo } from './with-demo'

/** Steps of the import: it gets no further than the middle while it is held. */
const LONG = 10_000
const MIDDLE = 6
const KILLS = 2

/** Brings the page into a state that does not change by itself, and answers the page that shows it. */
type Show = (demo: OpenDemo) => Promise<Page>

const detail = (page: Page) => page.getByRole('region', { name: /^Run / })
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })

/** Every state that the page has, in an order in which one leads to the next. */
export const STATES: readonly (readonly [name: string, show: Show])[] = [
  [
    'empty',
    async ({ page }) => {
      await page.getByRole('heading', { name: 'A crash costs one step' }).waitFor()
      return page
    },
  ],
  [
    'failed',
    async ({ page }) => {
      await dropNonsense(page)
      await detail(page).getByText('has the columns').first().waitFor()
      return page
    },
  ],
  [
    'completed',
    async ({ page }) => {
      await finishedRun(page, await importSample(page))
      await detail(page).getByRole('region', { name: 'Result' }).waitFor()
      return page
    },
  ],
  [
    'index',
    async ({ page }) => {
      const before = await runIds(page)
      await button(page, 'Build search index').click()
      await newRun(page, before)
      await detail(page).getByText('postings').waitFor()
      return page
    },
  ],
  [
    'running',
    async ({ page, witness }) => {
      witness.hold({ page, part: MIDDLE })
      const id = await importRows(page, LONG)
      await recordedSteps(page, id, MIDDLE)
      await detail(page).getByText('running', { exact: true }).first().waitFor()
      return page
    },
  ],
  [
    'follower',
    async ({ page, context }) => {
      const { page: second } = await openTab(context, page.url())
      await second.getByText('Another tab runs the jobs').waitFor()
      await detail(second).getByText('running', { exact: true }).first().waitFor()
      return second
    },
  ],
  [
    'resumed',
    async ({ page, context }) => {
      for (const other of context.pages()) if (other !== page && !other.url().startsWith('about:')) await other.close()
      for (let kill = 0; kill < KILLS; kill++) {
        await Promise.all([page.waitForEvent('load'), button(page, "Kill this tab's worker").click()])
        // Before its next execution there is nothing to kill. After the second one a while is waited for.
        await detail(page)
          .getByText(`${kill + 2} executions`)
          .waitFor()
        await detail(page).getByText('running', { exact: true }).first().waitFor()
      }
      await page.getByText(/Resumed: \d+ steps were skipped/).waitFor()
      return page
    },
  ],
  [
    'resumed and completed',
    async ({ page, witness }) => {
      witness.letAllGo()
      const [id = ''] = await runIds(page)
      await finishedRun(page, id)
      await detail(page).getByRole('region', { name: 'Result' }).waitFor()
      await page.reload()
      await detail(page).getByRole('region', { name: 'Result' }).waitFor()
      return page
    },
  ],
  [
    'cancelled',
    async ({ page, witness }) => {
      witness.hold({ page, part: MIDDLE })
      const id = await importRows(page, LONG)
      await recordedSteps(page, id, MIDDLE)
      await button(page, 'Cancel').click()
      witness.letAllGo()
      await finishedRun(page, id)
      await button(page, 'Retry').waitFor()
      return page
    },
  ],
  [
    'waiting, with a notice',
    async ({ page }) => {
      await page.evaluate(() => {
        const durably: Durably = Reflect.get(window, 'durably')
        const input = { '~standard': { version: 1, vendor: 'test', validate: () => ({ value: {} }) } } as const
        const retry = { maxAttempts: 3, delay: 3_600_000 } as const
        const job = durably.defineJob({ name: 'call-a-service', input, retry }, async (ctx) => {
          await ctx.run('prepare', () => 'prepared')
          await ctx.run('ask', () => {
            throw new Error('503: the service has no time')
          })
        })
        void job.trigger({}).then(({ id }) => location.assign(`#run=${id}`))
        const error = 'durably-demo.sqlite3: all of the space that this site may use is used up. Delete runs or files.'
        durably.emit({ type: 'worker:error', workerId: '', during: 'commit', code: 'STORAGE_FULL', error })
      })
      await detail(page).getByText('Attempt 2 begins in').waitFor()
      await page.getByRole('alert').waitFor()
      return page
    },
  ],
  [
    'no place to store',
    async ({ context }) => {
      const site = await servePlainly(inject('demoFolder'))
      const page = await context.newPage()
      page.once('close', () => void site.close())
      await page.goto(site.url)
      await page.getByRole('alert').waitFor()
      return page
    },
  ],
  [
    'in memory',
    async ({ context }) => {
      const page = context.pages().at(-1)
      if (page === undefined) throw new Error('The page of the state before is gone.')
      await button(page, 'Go on in memory').click()
      await page.getByRole('heading', { name: 'Nothing is kept here' }).waitFor()
      return page
    },
  ],
]

export async function dropNonsense(page: Page): Promise<void> {
  const before = await runIds(page)
  const file = { name: 'cats.csv', mimeType: 'text/csv', buffer: Buffer.from('name,colour\r\nMia,red\r\n') }
  await page.getByLabel('Drop a CSV of orders').setInputFiles(file)
  await finishedRun(page, await newRun(page, before))
}
