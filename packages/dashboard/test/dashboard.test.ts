import type { Action } from '@coji/durably-server'
import type { Page } from 'playwright'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { mend, parkRun } from '../../server/test/parked'
import { button, rows, withDashboard } from './dashboard-page'
import { countHours } from './counted-hours'
import { BASE } from './dashboard-site'
import { gate } from './jobs'
import { inLane } from '../../../test/scale'
import { itInFullLane } from '../../../test/full-lane'

test('watches a run from the list to its end, with its steps and logs', () =>
  withDashboard(async ({ page, site, open }) => {
    await open('/')
    await page.getByText('There are no runs yet').waitFor()
    site.durably.start()
    const { id } = await site.jobs.importOrders.trigger({ file: 'a.csv', gate: 'watched' })
    await rows(page).filter({ hasText: 'Running' }).filter({ hasText: 'part 3 of 4' }).waitFor()
    await page.getByRole('link', { name: /^import-orders/ }).click()
    expect(new URL(page.url()).pathname).toBe(`/admin/durably/runs/${id}`)
    await page.getByText('live', { exact: true }).waitFor()
    await page.getByRole('region', { name: 'What the run is doing' }).getByText('It is running on worker').waitFor()
    const steps = page.getByRole('list', { name: 'Steps' }).getByRole('button')
    await steps.filter({ hasText: 'write part 3' }).filter({ hasText: 'working' }).waitFor()
    gate('watched').open()
    await steps.filter({ hasText: 'write part 4' }).filter({ hasText: 'done' }).waitFor()
    await page.getByRole('article').getByText('Completed', { exact: true }).waitFor()
    await steps.filter({ hasText: 'write part 3' }).click()
    await page.getByText('two rows have no customer').waitFor()
    await page.getByRole('region', { name: 'Output of write part 3' }).getByText('"written": 300').waitFor()
    await page.getByRole('link', { name: /^Logs/ }).click()
    await page.getByRole('list', { name: 'Logs' }).getByText('reading').waitFor()
    await page.getByRole('link', { name: 'Events' }).click()
    await page.getByRole('list', { name: 'Events' }).getByText('run:complete').waitFor()
    await page.reload()
    await page.getByRole('list', { name: 'Events' }).getByText('run:complete').waitFor()
    await page.getByRole('link', { name: 'Input and output' }).click()
    await page.getByRole('region', { name: 'Output', exact: true }).getByText('"written": 1200').waitFor()
  }))

test('keeps the filters of the list in the address', () =>
  withDashboard(async ({ page, site, open }) => {
    const { jobs, durably } = site
    for (const region of ['eu', 'us']) await jobs.importOrders.trigger({ file: 'a.csv' }, { labels: { region } })
    const { id } = await jobs.charge.trigger({ amount: 1 })
    await open('/')
    await expect.poll(() => rows(page).count()).toBe(3)
    const search = page.getByRole('combobox', { name: /^Find runs/ })
    await page.keyboard.press('/')
    await page.keyboard.type('import-orders')
    await page.keyboard.press('Enter')
    await expect.poll(() => rows(page).count()).toBe(2)
    await search.fill('region=eu')
    await button(page, 'Find').click()
    await expect.poll(() => rows(page).count()).toBe(1)
    expect(new URL(page.url()).search).toBe('?job=import-orders&label=region%3Aeu')
    await page.reload()
    await rows(page).filter({ hasText: 'region=eu' }).waitFor()
    await button(page, 'Remove the filter import-orders').click()
    await button(page, 'Remove the filter region=eu').click()
    await expect.poll(() => rows(page).count()).toBe(3)
    await button(page, /^Failed/).click()
    await page.getByText('No run is like that').waitFor()
    durably.start()
    await rows(page).filter({ hasText: 'The card was declined' }).waitFor()
    await page.goBack()
    await expect.poll(() => rows(page).count()).toBe(3)
    await search.fill(id)
    await search.press('Enter')
    await page.getByRole('heading', { name: 'charge-card' }).waitFor()
    await page.getByRole('link', { name: 'card_declined' }).click()
    await rows(page).filter({ hasText: 'The card was declined' }).waitFor()
    expect(new URL(page.url()).search).toBe('?error=card_declined')
    await button(page, 'Remove the filter error card_declined').click()
    await search.fill(id.slice(0, -2))
    await search.press('Enter')
    await rows(page).filter({ hasText: 'charge-card' }).waitFor()
    await page.getByLabel('Created').selectOption('Last hour')
    await rows(page).filter({ hasText: 'charge-card' }).waitFor()
    expect(new URL(page.url()).search).toBe(`?since=1h&id=${id.slice(0, -2)}`)
  }))

test('retries, cancels and deletes many runs, by keyboard', () =>
  withDashboard(async ({ page, site, open }) => {
    const { jobs } = site
    await jobs.importOrders.batchTrigger([1, 2, 3].map((file) => ({ payload: { file: `${file}.csv` } })))
    await open('/')
    await expect.poll(() => rows(page).count()).toBe(3)
    await page
      .getByRole('link', { name: /^import-orders/ })
      .first()
      .focus()
    await page.keyboard.press('x')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('x')
    const bar = page.getByRole('group', { name: 'Chosen runs' })
    await bar.getByText('2 runs chosen').waitFor()
    expect(await bar.getByRole('button', { name: 'Retry 0' }).isDisabled()).toBe(true)
    await bar.getByRole('button', { name: 'Cancel 2' }).press('Enter')
    const dialog = page.getByRole('dialog', { name: 'Cancel 2 runs?' })
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    await bar.getByRole('button', { name: 'Cancel 2' }).press('Enter')
    await dialog.getByRole('button', { name: 'Cancel', exact: true }).press('Enter')
    await page.getByText('2 runs cancelled.').waitFor()
    await expect.poll(() => rows(page).filter({ hasText: 'Cancelled' }).count()).toBe(2)
    await page.getByLabel('Select all runs that are shown').check()
    await bar.getByRole('button', { name: 'Retry 2' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Retry' }).click()
    await expect.poll(() => rows(page).filter({ hasText: 'Pending' }).count()).toBe(3)
    site.durably.start()
    await expect.poll(() => rows(page).filter({ hasText: 'Completed' }).count()).toBe(3)
    await page.getByLabel('Select all runs that are shown').check()
    await bar.getByRole('button', { name: 'Delete 3' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByText('There are no runs yet').waitFor()
    expect(await site.durably.getRuns()).toEqual([])
  }))

itInFullLane('gives a run the signal that it waits for, and says what is no JSON', () =>
  withDashboard(async ({ page, site, open }) => {
    site.durably.start()
    const { id } = await site.jobs.approve.trigger({ title: 'Q3' })
    await open('/?view=for-people')
    await rows(page).filter({ hasText: 'for approval' }).getByRole('link').click()
    await page.getByText('It waits for "approval".').waitFor()
    await page.getByRole('region', { name: 'Streamed text' }).getByText('Revenue grew by 4 %.').waitFor()
    await button(page, 'Signal').click()
    const dialog = page.getByRole('dialog', { name: 'Send a signal' })
    expect(await dialog.getByLabel('Name').inputValue()).toBe('approval')
    await dialog.getByLabel('Payload, as JSON').fill('{ approved }')
    await dialog.getByRole('button', { name: 'Send' }).click()
    await dialog.getByText('This is no JSON').waitFor()
    await dialog.getByLabel('Payload, as JSON').fill('{ "approved": true }')
    await dialog.getByRole('button', { name: 'Send' }).click()
    await page.getByRole('article').getByText('Completed', { exact: true }).waitFor()
    expect((await site.durably.getRun(id))?.output).toEqual({ text: 'Q3', approval: { approved: true } })
  }),
)

test('cancels, retries and deletes a run on its page, and asks before', () =>
  withDashboard(async ({ page, site, complaints, open }) => {
    const { id } = await site.jobs.importOrders.trigger({ file: 'a.csv' })
    await open(`/runs/${id}`)
    await page.getByText('no worker runs in this process').waitFor()
    const confirm = async (action: string) => {
      await button(page, action).click()
      await page.getByRole('dialog').getByRole('button', { name: action, exact: true }).click()
    }
    await confirm('Cancel')
    await page.getByRole('article').getByText('Cancelled', { exact: true }).waitFor()
    await confirm('Retry')
    await page.getByRole('article').getByText('Pending', { exact: true }).waitFor()
    await confirm('Cancel')
    await confirm('Delete')
    await page.getByText('There is no such run').waitFor()
    await button(page, 'Show all runs').click()
    await page.getByText('There are no runs yet').waitFor()
    // The browser itself tells of what is not there.
    expect(complaints.splice(0).every((text) => text.includes('404'))).toBe(true)
  }))

test('says who has the concurrency key that a run waits for, and leads there', () =>
  withDashboard(async ({ page, site, open }) => {
    const { durably, jobs } = site
    const key = { concurrencyKey: 'shop' }
    const holder = await jobs.importOrders.trigger({ file: 'a.csv', gate: 'holder' }, key)
    const waiting = await jobs.importOrders.trigger({ file: 'b.csv' }, key)
    durably.start()
    await expect.poll(async () => (await durably.getRun(holder.id))?.status).toBe('running')
    await open(`/runs/${waiting.id}`)
    const why = page.getByRole('region', { name: 'What the run is doing' })
    await why.getByText('waits for its concurrency key "shop"').waitFor()
    await why.getByRole('link', { name: holder.id.slice(-8) }).click()
    await why.getByText('It is running on worker').waitFor()
    expect(new URL(page.url()).pathname).toBe(`${BASE}/runs/${holder.id}`)
    gate('holder').open()
    await page.getByRole('article').getByText('Completed', { exact: true }).waitFor()
    await page.goBack()
    await page.getByRole('article').getByText('Completed', { exact: true }).waitFor()
  }))

test('lets a parked run go on when its code was mended, and ends one whose code was not', () =>
  withDashboard(async ({ page, site, open }) => {
    const { durably } = site
    const [mended, given] = [await parkRun(durably), await parkRun(durably)]
    await open('/?view=parked')
    await expect.poll(() => rows(page).count()).toBe(2)
    const confirm = async (action: string) => {
      await button(page, action).click()
      await page.getByRole('dialog').getByRole('button', { name: action, exact: true }).click()
    }
    await open(`/runs/${given}`)
    await page.getByRole('article').getByText('Parked', { exact: true }).waitFor()
    await confirm('End as failed')
    await page.getByRole('article').getByText('Failed', { exact: true }).waitFor()
    await open(`/runs/${mended}`)
    mend(durably)
    durably.start()
    await confirm('Let it go on')
    await page.getByRole('article').getByText('Completed', { exact: true }).waitFor()
    expect(await durably.getRun(given)).toMatchObject({ status: 'failed' })
  }))

test('runs a run again after a step that it completed, with another input', () =>
  withDashboard(async ({ page, site, complaints, open }) => {
    site.durably.start()
    const { id } = await site.jobs.importOrders.triggerAndWait({ file: 'old.csv' })
    await open(`/runs/${id}`)
    await button(page, 'Run again').click()
    const dialog = page.getByRole('dialog', { name: 'Run it again' })
    await dialog.getByLabel('Go on').selectOption('after write part 2')
    await dialog.getByLabel('Input, as JSON').fill('{ "file": 7 }')
    await dialog.getByRole('button', { name: 'Run' }).click()
    await dialog.getByRole('alert').filter({ hasText: 'file' }).waitFor()
    await dialog.getByLabel('Input, as JSON').fill('{ "file": "new.csv" }')
    await dialog.getByRole('button', { name: 'Run' }).click()
    await page
      .getByRole('complementary')
      .getByRole('link', { name: id.slice(-8) })
      .waitFor()
    await page.getByRole('article').getByText('Completed', { exact: true }).waitFor()
    const [forked] = await site.durably.getRuns({ limit: 1 })
    // The browser itself tells of the input that was refused.
    expect(complaints.splice(0).every((text) => text.includes('422'))).toBe(true)
    expect(forked).toMatchObject({ forkedFrom: id, payload: { file: 'new.csv' }, status: 'completed' })
  }))

test('does something to all runs that a filter finds, as a run with its progress', () =>
  withDashboard(async ({ page, site, open }) => {
    const items = Array.from({ length: 130 }, (_, file) => ({ payload: { file: `${file}` } }))
    await site.jobs.importOrders.batchTrigger(items)
    await site.jobs.charge.trigger({ amount: 1 })
    await open('/?job=import-orders')
    await page.getByLabel('Select all runs that are shown').check()
    await button(page, 'Choose all that the filter finds').click()
    await button(page, 'Cancel all').click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('It finds 130 at present.').waitFor()
    await dialog.getByRole('button', { name: 'Cancel', exact: true }).click()
    await page.getByRole('heading', { name: 'durably:bulk' }).waitFor()
    // Nothing runs but this: the worker takes the oldest first, of which none is left.
    site.durably.start()
    await page.getByRole('article').getByText('Completed', { exact: true }).waitFor()
    expect((await site.durably.counts({ jobName: 'import-orders' })).pending).toBe(0)
  }))

test('offers nothing to who may only read', () =>
  withDashboard(
    async ({ page, site, open }) => {
      const { id } = await site.jobs.importOrders.trigger({ file: 'a.csv' }, { tenant: 'acme' })
      await site.jobs.charge.trigger({ amount: 1 })
      await open('/')
      await expect.poll(() => rows(page).count()).toBe(1)
      await page.getByText('read-only').waitFor()
      await page.getByText('mia@acme.example').waitFor()
      expect(await page.getByRole('checkbox').count()).toBe(0)
      await open(`/runs/${id}`)
      await page.getByRole('heading', { name: 'import-orders' }).waitFor()
      expect(await page.getByRole('group', { name: 'Actions' }).count()).toBe(0)
    },
    { handler: { authorize: () => ({ actor: 'mia@acme.example', tenant: 'acme', allow: 'read' }) } },
  ))

const RUN_ACTIONS: Readonly<Record<string, readonly string[]>> = {
  retry: ['Retry'],
  cancel: ['Cancel'],
  delete: ['Delete'],
  unpark: ['Let it go on', 'End as failed'],
  fork: ['Run again'],
  signal: ['Signal'],
}

/** What can be done to runs of a list. */
const OF_MANY = ['retry', 'cancel', 'delete']

/** The names of the buttons of a group, without the numbers in them. */
async function buttonsOf(page: Page, group: string): Promise<readonly string[]> {
  const names = await page.getByRole('group', { name: group }).getByRole('button').allTextContents()
  return names.map((name) => name.replace(/ \d+$/, ''))
}

test.each(inLane(Object.entries(RUN_ACTIONS), ([action]) => action === 'cancel'))(
  'offers to who may only read and %s nothing else to do',
  (action, labels) =>
    withDashboard(
      async ({ page, site, open }) => {
        const { jobs, durably } = site
        const waiting = await jobs.approve.trigger({ title: 'Q3' })
        await durably.runUntilIdle()
        const [parked, ended] = [await parkRun(durably), await jobs.importOrders.trigger({ file: 'a.csv' })]
        await durably.cancel(ended.id)
        await open('/')
        await expect.poll(() => rows(page).count()).toBe(3)
        expect(await page.getByText('read-only').count()).toBe(0)
        expect((await page.getByRole('checkbox').count()) > 0).toBe(OF_MANY.includes(action))
        if (OF_MANY.includes(action)) {
          await page.getByLabel('Select all runs that are shown').check()
          expect(await buttonsOf(page, 'Chosen runs')).toEqual([...labels, 'Clear'])
        }
        const offered = new Set<string>()
        for (const id of [waiting.id, parked, ended.id]) {
          await open(`/runs/${id}`)
          await page.getByRole('complementary', { name: 'Facts' }).waitFor()
          if (action === 'signal' && id === waiting.id) await button(page, 'Signal').waitFor()
          for (const name of await buttonsOf(page, 'Actions')) offered.add(name)
        }
        expect([...offered]).toEqual(labels)
      },
      { handler: { authorize: () => ({ tenant: null, allow: ['read', action as Action] }) } },
    ),
)

const SCHEDULE_ACTIONS = [
  ['trigger', 'Run now: nightly'],
  ['schedule', 'Pause: nightly'],
  ['audit', null],
] as const

test.each(inLane<(typeof SCHEDULE_ACTIONS)[number]>(SCHEDULE_ACTIONS, ([action]) => action === 'schedule'))(
  'offers to who may only read and %s of a schedule: %s',
  (action, label) =>
    withDashboard(
      async ({ page, site, open }) => {
        const { schedules, jobs } = site
        await schedules.create('nightly', { job: jobs.importOrders, payload: { file: 'a.csv' }, cron: '0 2 * * *' })
        await open('/schedules')
        const listed = page.getByRole('list', { name: 'Schedules' }).getByRole('listitem')
        await listed.filter({ hasText: '0 2 * * * (UTC)' }).waitFor()
        const offered = await listed.getByRole('button').evaluateAll((all) => all.map((each) => each.ariaLabel))
        expect(offered).toEqual(label === null ? [] : [label])
      },
      { handler: { authorize: () => ({ tenant: null, allow: ['read', action] }) } },
    ),
)

test('offers nothing for all that a filter finds where that is not served', () =>
  withDashboard(
    async ({ page, site, open }) => {
      await site.jobs.importOrders.batchTrigger(Array.from({ length: 101 }, () => ({ payload: { file: 'a.csv' } })))
      await open('/')
      await page.getByLabel('Select all runs that are shown').check()
      expect(await buttonsOf(page, 'Chosen runs')).toEqual(['Retry', 'Cancel', 'Delete', 'Clear'])
    },
    { handler: { allowAnonymous: true, bulk: false } },
  ))

itInFullLane('says who is not let in, and lets them in later', async () => {
  let isLoggedIn = false
  const handler = { authorize: () => (isLoggedIn ? { tenant: null, allow: 'all' as const } : null) }
  await withDashboard(
    async ({ page, complaints, open }) => {
      await open('/')
      await page.getByRole('heading', { name: 'Please log in first' }).waitFor()
      isLoggedIn = true
      await button(page, 'Try again').click()
      await page.getByText('There are no runs yet').waitFor()
      // The browser itself tells of an answer that is none.
      expect(complaints.splice(0).every((text) => text.includes('401'))).toBe(true)
    },
    { handler },
  )
})

test('shows what it knew while the server is away, and goes on when it is back', () =>
  withDashboard(async ({ page, site, complaints, open }) => {
    site.durably.start()
    const { id } = await site.jobs.importOrders.trigger({ file: 'a.csv', gate: 'away' })
    await open(`/runs/${id}`)
    const steps = page.getByRole('list', { name: 'Steps' }).getByRole('button')
    await steps.filter({ hasText: 'write part 3' }).filter({ hasText: 'working' }).waitFor()
    await site.goAway()
    await page.getByRole('alert').getByText('Not up to date.').waitFor()
    gate('away').open()
    await site.jobs.importOrders.wait(id)
    expect(await steps.filter({ hasText: 'write part 3' }).filter({ hasText: 'working' }).count()).toBe(1)
    await site.comeBack()
    await page.getByRole('article').getByText('Completed', { exact: true }).waitFor()
    await steps.filter({ hasText: 'write part 4' }).filter({ hasText: 'done' }).waitFor()
    complaints.length = 0
  }))

itInFullLane('is open in five tabs at once, of which each takes one of the six connections of the browser', () =>
  withDashboard(async ({ page, site, open }) => {
    site.durably.start()
    const { id } = await site.jobs.importOrders.trigger({ file: 'a.csv', gate: 'tabs' })
    await open('/')
    const tabs = await Promise.all([1, 2, 3, 4].map(() => page.context().newPage()))
    for (const tab of tabs) {
      await tab.goto(`${site.url}/runs/${id}`)
      await tab.getByText('live', { exact: true }).waitFor()
    }
    await rows(page).filter({ hasText: 'part 3 of 4' }).waitFor()
    gate('tabs').open()
    for (const tab of tabs) await tab.getByRole('article').getByText('Completed', { exact: true }).waitFor()
    await rows(page).filter({ hasText: 'Completed' }).waitFor()
  }),
)

test('shows a list of thousands without having all of it in the page', () =>
  withDashboard(async ({ page, site, open }) => {
    for (let batch = 0; batch < 3; batch++) {
      await site.jobs.importOrders.batchTrigger(
        Array.from({ length: 100 }, (_, file) => ({ payload: { file: `${file}` } })),
      )
    }
    await open('/')
    await button(page, /^All 300/).waitFor()
    expect(await rows(page).count()).toBeLessThan(60)
    // Each page is asked for when the end of the one before comes into sight.
    const last = page.locator('[aria-posinset="300"]')
    const scroll = async () => {
      await page.mouse.wheel(0, 900)
      return last.count()
    }
    await expect.poll(scroll, { interval: 20 }).toBe(1)
    expect(await rows(page).count()).toBeLessThan(60)
  }))

test('shows what was counted, for a time and a job that the address keeps', () =>
  withDashboard(async ({ page, site, open }) => {
    await open('/')
    await page.getByRole('link', { name: 'Statistics' }).click()
    await page.getByText('withStatistics()', { exact: true }).waitFor()
    await countHours(site.durably)
    await page.reload()
    await page.getByRole('img', { name: /runs ended between/ }).waitFor()
    await page.getByRole('img', { name: /^Duration. The 95th percentile was [\d.]+ s at most/ }).waitFor()
    await button(page, '30 days').click()
    await page.getByRole('img', { name: /in one day\.$/ }).waitFor()
    await page.getByRole('combobox', { name: 'Job' }).selectOption('charge-card')
    await page.getByRole('img', { name: /^0 runs ended/ }).waitFor()
    expect(new URL(page.url()).search).toBe('?range=30d&job=charge-card')
    await page.reload()
    await page.getByRole('img', { name: /^Queue latency. There is none/ }).waitFor()
  }))

test('lists schedules, pauses them, and runs one now', () =>
  withDashboard(async ({ page, site, open }) => {
    const { schedules, jobs, durably } = site
    await schedules.create('nightly', { job: jobs.importOrders, payload: { file: 'a.csv' }, cron: '0 2 * * *' })
    await open('/')
    await page.getByRole('link', { name: 'Schedules' }).click()
    const listed = page.getByRole('list', { name: 'Schedules' }).getByRole('listitem')
    await listed.filter({ hasText: '0 2 * * * (UTC)' }).waitFor()
    await button(page, 'Pause: nightly').click()
    await button(page, 'Pause').click()
    await listed.filter({ hasText: 'by hand' }).waitFor()
    expect(await schedules.get('nightly')).toMatchObject({ pausedBecause: 'by hand' })
    await button(page, 'Resume: nightly').click()
    await button(page, 'Resume').click()
    await button(page, 'Pause: nightly').waitFor()
    await button(page, 'Run now: nightly').click()
    await button(page, 'Run now').click()
    await expect.poll(async () => (await durably.getRuns()).length).toBe(1)
  }))

test('shows who is there, who leads and what they hold, as it changes', () =>
  withDashboard(async ({ page, site, open }) => {
    const { durably, jobs } = site
    await open('/')
    await page.getByRole('link', { name: 'Workers' }).click()
    await page.getByText('No worker has told of itself yet').waitFor()
    const { id } = await jobs.importOrders.trigger({ file: 'a.csv', gate: 'worker' })
    durably.start()
    const { workerId } = durably.health()
    const own = page.getByRole('list', { name: 'Workers', exact: true }).getByRole('listitem')
    await own
      .filter({ hasText: workerId })
      .filter({ hasText: 'Active' })
      .filter({ hasText: 'Leader' })
      .first()
      .waitFor()
    await own.filter({ hasText: '1 of 4' }).filter({ hasText: '2026-11-19' }).filter({ hasText: 'zone=eu' }).waitFor()
    await page.getByText(`${workerId} leads, in epoch 1`).waitFor()
    await page
      .getByRole('list', { name: `Runs of ${workerId}` })
      .getByRole('link', { name: id.slice(-8) })
      .click()
    await page.getByRole('complementary', { name: 'Facts' }).getByRole('link', { name: workerId }).click()
    gate('worker').open()
    await own.filter({ hasText: '0 of 4' }).waitFor()
    await durably.stop()
    await page.getByText('1 worker of the last day').click()
    await page.getByRole('list', { name: 'Workers that are gone' }).getByText('Left', { exact: true }).waitFor()
  }))

itInFullLane('shows no workers to who belongs to a tenant', () =>
  withDashboard(
    async ({ page, open }) => {
      await open('/workers')
      await page.getByRole('heading', { name: 'Workers are not shown here' }).waitFor()
      expect(await page.getByRole('link', { name: 'Workers' }).count()).toBe(0)
    },
    { handler: { authorize: () => ({ tenant: 'acme', allow: 'all' }) } },
  ),
)

test('leads from a run to its children and back', () =>
  withDashboard(async ({ page, site, open }) => {
    const { durably } = site
    durably.defineJob({ name: 'parent', input: z.unknown() }, (ctx) => ctx.trigger('one', { name: 'child' }, 1))
    durably.defineJob({ name: 'child', input: z.unknown() }, () => 1)
    const { id } = await durably.trigger('parent')
    durably.start()
    await open(`/runs/${id}`)
    await page
      .getByRole('region', { name: 'Children' })
      .getByRole('link', { name: /^child/ })
      .click()
    await page.getByRole('heading', { name: 'child', level: 1 }).waitFor()
    await page.getByRole('complementary', { name: 'Facts' }).getByRole('link').first().click()
    await page.getByRole('heading', { name: 'parent', level: 1 }).waitFor()
  }))
