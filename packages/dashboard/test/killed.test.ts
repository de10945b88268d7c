import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, inject, test } from 'vitest'
import { z } from 'zod'
import { newFolder, openWorker } from '../../server/test/file-worker'
import { startServer } from '../../server/test/killable-server'
import { withPageOf } from './dashboard-page'
import { gate } from './jobs'
import { watchAnswers } from './page-answers'

const PROGRAM = fileURLToPath(new URL('./programs/serve-dashboard.ts', import.meta.url))

/** A dashboard that is served by a process of its own, and the worker of its runs in this one. */
async function openKillable() {
  const folder = newFolder()
  const [file, assets] = [join(folder, 'app.db'), join(folder, 'assets.json')]
  writeFileSync(assets, JSON.stringify(inject('assets')))
  const durably = await openWorker(file)
  return { ...(await startServer(PROGRAM, { file, assets })), durably }
}

const PARTS = ['one ', 'two']

/** So tall that all events are in the page. */
const TALL = { viewport: { width: 1280, height: 2400 } }

test('goes on with no gap and no double when the process of its server is killed and started again', async () => {
  const site = await openKillable()
  const { durably } = site
  durably.defineJob({ name: 'says', input: z.unknown() }, (ctx) =>
    ctx.stream('speech', async (emit) => {
      for (const part of PARTS) {
        await gate(part).opened
        for (const letter of part) await emit(letter)
        ctx.log.info(`said ${part}`)
      }
    }),
  )
  await withPageOf(
    site,
    async ({ page, complaints, open }) => {
      const answers = watchAnswers(page, '/api')
      const { id } = await durably.trigger('says', 1)
      durably.start()
      await open(`/runs/${id}`)
      // As long as it is there the page was not loaded anew.
      await page.evaluate('window.stayed = true')
      await page.getByText('live', { exact: true }).waitFor()
      await page.getByRole('link', { name: 'Events' }).click()
      const listed = page.getByRole('list', { name: 'Events' })
      for (const part of PARTS) {
        await site.kill()
        await page.getByRole('alert').getByText('Not up to date.').first().waitFor()
        gate(part).open()
        await expect.poll(async () => (await durably.getLogs(id)).at(-1)?.message).toBe(`said ${part}`)
        await site.startAgain()
        await listed.getByText(`said ${part}`).waitFor()
      }
      await page.getByRole('article').getByText('Completed', { exact: true }).waitFor()
      const events = (await durably.getEvents(id)).map(({ seq, type }) => `${seq} ${type}`)
      const shown = listed.getByRole('listitem')
      await expect.poll(() => shown.count()).toBe(events.length)
      expect(await shown.evaluateAll(numbersAndTypes)).toEqual(events)
      await page.getByRole('link', { name: /^Logs/ }).click()
      const logs = page.getByRole('list', { name: 'Logs' }).getByRole('listitem')
      await expect.poll(() => logs.count()).toBe(PARTS.length)
      await page.getByRole('link', { name: 'Timeline' }).click()
      await page.getByRole('region', { name: 'Streamed text' }).getByText(PARTS.join(''), { exact: true }).waitFor()
      expect(await page.evaluate('window.stayed')).toBe(true)
      const { count, misfits } = await answers()
      expect(count).toBeGreaterThan(PARTS.length)
      expect(misfits).toEqual([])
      // The browser itself tells of a server that is not there.
      expect(complaints.splice(0).every((text) => text.includes('ERR_'))).toBe(true)
    },
    TALL,
  )
})

function numbersAndTypes(lines: readonly Element[]): readonly string[] {
  return lines.map(
    (line) => `${line.querySelector('.event-seq')?.textContent} ${line.querySelector('strong')?.textContent}`,
  )
}
