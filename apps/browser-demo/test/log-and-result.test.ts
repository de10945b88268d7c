import type { Durably } from '@coji/durably'
import type { Page } from 'playwright'
import { expect, test } from 'vitest'
import { finishedRun, importSample } from './demo-page'
import { PARTS } from './sample'
import { withDemo } from './with-demo'

const resultOf = (page: Page, id: string) =>
  page.getByRole('region', { name: `Run ${id}` }).getByRole('region', { name: 'Result' })

/** The lines of the log without their times, oldest first. */
async function logOf(page: Page): Promise<string[]> {
  const lines = await page.getByRole('list', { name: 'Log lines' }).locator('li > span').allTextContents()
  return lines.map((line) => line.replace(/ in [\d.]+ (ms|s)$/, ' in a while')).reverse()
}

/** Does what the page invites to: registers a job of one's own in the console, and answers the id of its run. */
function runTalkativeJob(page: Page): Promise<string> {
  return page.evaluate(async () => {
    const durably: Durably = Reflect.get(window, 'durably')
    const validate = (value: unknown) => ({ value: value as object })
    const input = { '~standard': { version: 1, vendor: 'test', validate } } as const
    const job = durably.defineJob({ name: 'talkative', input }, async (ctx) => {
      ctx.log.info('said before the step')
      await ctx.run('speak', ({ log }) => log.warn('said within the step'))
      ctx.log.error('said after the step')
      return { spoken: 3 }
    })
    return (await job.trigger({})).id
  })
}

test('a finished import shows what happened and what came of it', () =>
  withDemo(async ({ page }) => {
    const id = await importSample(page)
    const { output } = await finishedRun(page, id)
    const parts = Array.from({ length: PARTS }, (_, part) => `rows ${part * 1000 + 1}-${part * 1000 + 1000}`)
    await expect
      .poll(() => logOf(page))
      .toEqual([
        'The run was triggered',
        'A worker began an execution',
        ...['open', ...parts].map((step) => `${step} completed in a while`),
        'The run completed in a while',
      ])
    const { accepted, byCategory, rejected } = output as {
      readonly accepted: number
      readonly byCategory: Readonly<Record<string, { readonly orders: number; readonly units: number }>>
      readonly rejected: Readonly<Record<string, number>>
    }
    const shown = (count: number) => count.toLocaleString('en')
    const result = resultOf(page, id)
    await result.getByText(`${shown(accepted)} of 20,000 rows accepted`).waitFor()
    const rows = await result.locator('tbody tr').evaluateAll((all) => {
      return all.map((row) => [...row.children].slice(0, 3).map((cell) => cell.textContent))
    })
    const expected = Object.entries(byCategory).map(([name, { orders, units }]) => [name, shown(orders), shown(units)])
    expect(expected.length).toBeGreaterThan(2)
    expect(rows).toEqual(expected)
    const refused = Object.entries(rejected).map(([reason, count]) => `${reason} ${shown(count)}`)
    await result.getByText(`Refused, by what was wrong: ${refused.join(', ')}.`).waitFor()
  }))

test('what a job logs is shown among what happened to it, also after a reload', () =>
  withDemo(async ({ page }) => {
    const id = await runTalkativeJob(page)
    await page.getByRole('list', { name: 'Runs' }).getByRole('button', { name: 'talkative' }).click()
    const lines = [
      'said before the step',
      'warn: speak: said within the step',
      'error: said after the step',
      'The run completed in a while',
    ]
    for (const message of ['at once', 'after a reload']) {
      const log = async () => (await logOf(page)).filter((line) => lines.includes(line))
      await expect.poll(log, { message }).toEqual(lines)
      await resultOf(page, id).getByText('"spoken": 3').waitFor()
      await page.reload()
    }
  }))
