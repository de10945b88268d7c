import { inject } from 'vitest'
import { itInFullLane } from '../../../test/full-lane'
import { openTab } from './demo-page'
import { interruptImport, timedImport } from './interrupted-import'
import { startKillableBrowser, type KillableBrowser } from './killable-browser'
import { moments } from './moments'
import { withProfile } from './profile'
import { createTally } from './tally'
import { createWitness } from './witness'

const REPETITIONS = 20

itInFullLane(
  'a browser killed at any moment of an import finishes it when it is started again',
  { timeout: 600_000 },
  () =>
    withProfile(async (profile) => {
      const witness = createWitness()
      let browser: KillableBrowser | null = null
      const kill = async () => {
        await browser?.kill()
        browser = null
      }
      const open = async () => {
        if (browser === null) {
          browser = await startKillableBrowser(profile)
          await witness.watch(browser.context)
        }
        return openTab(browser.context, inject('demoUrl'))
      }
      try {
        const durationMs = await timedImport(await open())
        const tally = createTally('browser demo: browser killed')
        for (const moment of moments(REPETITIONS, 2)) {
          const interrupted = await interruptImport({ open, end: kill, moment, durationMs, witness })
          tally.add(interrupted)
          await interrupted.close()
        }
        tally.report()
      } finally {
        await kill()
      }
    }),
)
