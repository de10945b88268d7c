import { inject, test } from 'vitest'
import { scaled } from '../../../test/scale'
import { type DemoTab, openTab } from './demo-page'
import { interruptImport, timedImport } from './interrupted-import'
import { moments } from './moments'
import { withBrowser } from './profile'
import { createTally } from './tally'
import { createWitness } from './witness'

const REPETITIONS = scaled({ quick: 1, full: 20 })

test('a tab closed at any moment of an import is followed by one that finishes it', { timeout: 400_000 }, () =>
  withBrowser(async (context) => {
    const witness = createWitness()
    await witness.watch(context)
    const open = () => openTab(context, inject('demoUrl'))
    const durationMs = await timedImport(await open())
    const tally = createTally('browser demo: tab closed')
    for (const moment of moments(REPETITIONS, 1)) {
      const end = ({ page }: DemoTab) => page.close()
      const interrupted = await interruptImport({ open, end, moment, durationMs, witness })
      tally.add(interrupted)
      await interrupted.close()
    }
    tally.report()
  }),
)
