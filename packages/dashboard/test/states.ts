import type { Page } from 'playwright'
import { button, rows, type OpenDashboard } from './dashboard-page'
import { countHours } from './counted-hours'
import { gate } from './jobs'

/** What there is to see, in the order of a visit. Each leaves the page as the next one finds it. */
export const STATES: readonly (readonly [name: string, show: (dashboard: OpenDashboard) => Promise<void>])[] = [
  ['nobody counts', (dashboard) => openPath(dashboard, { path: '/stats', sees: 'There are no statistics' })],
  ['no workers', (dashboard) => openPath(dashboard, { path: '/workers', sees: 'No worker has told of itself yet' })],
  ['empty', (dashboard) => openPath(dashboard, { path: '/', sees: 'There are no runs yet' })],
  ['list', showList],
  ['busy day', showBusyDay],
  ['chosen', choose],
  ['asking', async ({ page }) => button(page, /^Delete \d/).click()],
  ['no match', (dashboard) => openPath(dashboard, { path: '/?view=parked&job=x', sees: 'No run is like that' })],
  ['running', (dashboard) => openRun(dashboard, { note: 'part 3 of 4', sees: 'working' })],
  ['failed', showFailed],
  ['retrying', (dashboard) => openRun(dashboard, { note: '503', sees: 'The attempt before failed' })],
  ['waiting', (dashboard) => openRun(dashboard, { note: 'for approval', sees: 'Streamed text' })],
  ['signalling', async ({ page }) => button(page, 'Signal').click()],
  ['completed', showStep],
  ['running again', async ({ page }) => button(page, 'Run again').click()],
  ['data', ({ page }) => showTab(page, { tab: 'Input and output', sees: '"written": 1200' })],
  ['logs', ({ page }) => showTab(page, { tab: /^Logs/, sees: 'two rows have no customer' })],
  ['events', ({ page }) => showTab(page, { tab: 'Events', sees: 'run:complete' })],
  ['raw', ({ page }) => showTab(page, { tab: 'Raw', sees: '"currentStepIndex"' })],
  ['statistics', showStatistics],
  ['month', async ({ page }) => button(page, '30 days').click()],
  ['no schedules', (dashboard) => openPath(dashboard, { path: '/schedules', sees: 'There are no schedules yet' })],
  ['schedules', showSchedules],
  ['pausing', async ({ page }) => button(page, 'Pause: nightly report').click()],
  ['workers', showWorkers],
  ['missing', (dashboard) => openPath(dashboard, { path: '/runs/nowhere', sees: 'There is no such run' })],
]

interface Place {
  readonly path: string
  readonly sees: string
}

async function openPath({ page, open }: OpenDashboard, { path, sees }: Place): Promise<void> {
  await open(path)
  await page.getByText(sees).waitFor()
}

async function showList({ page, site }: OpenDashboard): Promise<void> {
  const { durably, jobs } = site
  durably.start()
  for (let part = 0; part < 9; part++) {
    await jobs.importOrders.triggerAndWait(
      { file: `${part}.csv` },
      { labels: { region: part % 2 === 0 ? 'eu' : 'us' } },
    )
  }
  for (const amount of [4200, 17]) await jobs.charge.trigger({ amount })
  await jobs.approve.trigger({ title: 'Q3' })
  await jobs.shaky.trigger({ account: 'acme' })
  await jobs.importOrders.trigger({ file: 'big.csv', gate: 'states' }, { concurrencyKey: 'big' })
  await rows(page).filter({ hasText: 'part 3 of 4' }).waitFor()
  const waiting = await jobs.importOrders.trigger({ file: 'next.csv' }, { concurrencyKey: 'big' })
  await durably.cancel(waiting.id)
  for (const note of ['Cancelled', 'declined: 17', 'for approval', '503'])
    await rows(page).filter({ hasText: note }).waitFor()
}

/** The same runs, as if they had been triggered over a day. */
async function showBusyDay({ page, open }: OpenDashboard): Promise<void> {
  const isList = (url: URL) => url.pathname.endsWith('/api/runs')
  await page.route(isList, async (route) => {
    const response = await route.fetch()
    const answer = (await response.json()) as { readonly runs: readonly { readonly createdAt: string }[] }
    const runs = answer.runs.map((run, index) => {
      return { ...run, createdAt: new Date(Date.parse(run.createdAt) - (index * 1.37) ** 2 * 300_000).toISOString() }
    })
    await route.fulfill({ response, json: { ...answer, runs } })
  })
  await open('/')
  await page.getByText('runs by creation').waitFor()
  await page.unroute(isList)
}

async function showStatistics(dashboard: OpenDashboard): Promise<void> {
  await countHours(dashboard.site.durably)
  await openPath(dashboard, { path: '/stats?range=7d', sees: 'Queue latency, p95' })
}

async function showSchedules(dashboard: OpenDashboard): Promise<void> {
  const { schedules, jobs } = dashboard.site
  const payload = { file: 'a.csv' }
  const job = jobs.importOrders
  await schedules.create('nightly report', { job, payload, cron: '0 2 * * *', zone: 'Asia/Tokyo' })
  await schedules.create('poll', { job, payload, every: 3_600_000, tenant: 'acme' })
  await schedules.pause('poll', { tenant: 'acme', because: 'the shop is closed' })
  await openPath(dashboard, { path: '/schedules', sees: 'the shop is closed' })
}

/** Beside the one that is at work here: one that is leaving, one that has left and one that nobody hears of. */
async function showWorkers(dashboard: OpenDashboard): Promise<void> {
  const { durably, jobs } = dashboard.site
  const placement = durably.storage.cluster?.placement
  const beat = {
    capacity: 8,
    placedJobs: ['render-film'],
    labels: { gpu: 'yes', zone: 'us' },
    codeVersion: '2026-11-18',
  }
  await placement?.beat({ ...beat, workerId: 'render-1', presence: 'draining', ttlMs: 3_600_000 })
  await placement?.beat({ ...beat, workerId: 'render-2', presence: 'detached', ttlMs: 3_600_000 })
  await placement?.beat({ ...beat, workerId: 'render-3', presence: 'active', ttlMs: 1 })
  await jobs.importOrders.trigger({ file: 'held.csv', gate: 'held' })
  await openPath(dashboard, { path: '/workers', sees: 'part 3 of 4' })
  await dashboard.page.getByText('left or fell silent').click()
}

async function choose({ page }: OpenDashboard): Promise<void> {
  for (const row of await rows(page).getByRole('checkbox').all()) await row.check()
}

interface ListedRun {
  /** In its row. */
  readonly note: string
  readonly sees: string
}

async function openRun({ page, open }: OpenDashboard, { note, sees }: ListedRun): Promise<void> {
  await open('/')
  await rows(page).filter({ hasText: note }).first().getByRole('link').click()
  await page.getByText(sees).first().waitFor()
}

async function showFailed(dashboard: OpenDashboard): Promise<void> {
  gate('states').open()
  await openRun(dashboard, { note: 'declined: 4200', sees: 'card_declined' })
  await dashboard.page.getByText('Stack').first().click()
}

async function showStep(dashboard: OpenDashboard): Promise<void> {
  await openRun(dashboard, { note: 'region=eu', sees: 'write part 3' })
  await dashboard.page.getByRole('button', { name: /write part 3/ }).click()
  await dashboard.page.getByText('two rows have no customer').waitFor()
}

interface Tab {
  readonly tab: string | RegExp
  readonly sees: string
}

async function showTab(page: Page, { tab, sees }: Tab): Promise<void> {
  // A dialog may still be open.
  await page.keyboard.press('Escape')
  await page.getByRole('link', { name: tab }).click()
  await page.getByText(sees).first().waitFor()
}
