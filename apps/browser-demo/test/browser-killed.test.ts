import { expect, inject, test } from 'vitest'
import { scaled } from '../../../test/scale'
import { openTab } from './demo-page'
import { interruptImport, timedImport } from './interrupted-import'
import { startKillableBrowser, type KillableBrowser } from './killable-browser'
import { moments } from './moments'
import { withProfile } from './profile'
import { createTally } from './tally'
import { type BodyStart, witnessBodies } from './witness'

const REPETITIONS = scaled({ quick: 4, full: 20 })

test('a browser killed at any moment of an import finishes it when it is started again', { timeout: 600_000 }, () =>
  withProfile(async (profile) => {
    const seen: BodyStart[] = []
    let browser: KillableBrowser | null = null
    const kill = async () => {
      await browser?.kill()
      browser = null
    }
    const open = async () => {
      if (browser === null) {
        browser = await startKillableBrowser(profile)
        await witnessBodies(browser.context, (start) => seen.push(start))
      }
      return openTab(browser.context, inject('demoUrl'))
    }
    try {
      const durationMs = await timedImport(await open())
      const tally = createTally('browser demo: browser killed')
      for (const moment of moments(REPETITIONS, 2)) {
        const interrupted = await interruptImport({ open, end: kill, delayMs: moment * durationMs, seen })
        tally.add(interrupted)
        await interrupted.close()
      }
      tally.report()
      expect(tally.midway()).toBeGreaterThan(0)
    } finally {
      await kill()
    }
  }),
)
