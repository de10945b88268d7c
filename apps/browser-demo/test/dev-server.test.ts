import { expect } from 'vitest'
import { finishedRun, importSample, openTab } from './demo-page'
import { withBrowser } from './profile'
import { checkSampleImport } from './sample'
import { serveDemo } from './vite-process'
import { itInFullLane } from '../../../test/full-lane'

itInFullLane('the dev server serves the same', async () => {
  const site = await serveDemo([])
  try {
    await withBrowser(async (context) => {
      const { page, complaints } = await openTab(context, site.url)
      const run = await finishedRun(page, await importSample(page))
      expect(checkSampleImport(run)).toEqual([])
      expect(complaints).toEqual([])
    })
  } finally {
    await site.close()
  }
})
