import { expect, test } from 'vitest'
import { complaintsOf, finishedRun, importSample } from './demo-page'
import { withDemo } from './with-demo'

test('the dashboard shows the runs of the demo in a tab of its own, and steers them, without a server', async () => {
  await withDemo(async ({ page, context }) => {
    const id = await importSample(page)
    await finishedRun(page, id)
    const opening = context.waitForEvent('page')
    await page.getByRole('link', { name: 'The dashboard' }).click()
    const dashboard = await opening
    const complaints = complaintsOf(dashboard)
    await dashboard.getByRole('link', { name: 'import-csv' }).first().click()
    await dashboard.getByRole('heading', { name: 'import-csv' }).waitFor()
    expect(new URL(dashboard.url()).hash).toBe(`#/runs/${id}`)
    await dashboard.reload()
    await dashboard.getByText('Completed').first().waitFor()

    await dashboard.getByRole('button', { name: 'Run again' }).click()
    await dashboard.getByRole('dialog').getByRole('button', { name: 'Run', exact: true }).click()
    await expect.poll(() => new URL(dashboard.url()).hash).not.toBe(`#/runs/${id}`)
    const forkId = new URL(dashboard.url()).hash.split('/').at(-1) ?? ''
    // The worker is in the other tab.
    expect((await finishedRun(page, forkId)).status).toBe('completed')
    await dashboard.getByText('Completed').first().waitFor()
    await dashboard.goBack()
    await expect.poll(() => new URL(dashboard.url()).hash).toBe(`#/runs/${id}`)
    expect(complaints).toEqual([])
  })
})
