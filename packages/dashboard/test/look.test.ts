import { join } from 'node:path'
import { env } from 'node:process'
import type { Page } from 'playwright'
import { expect, test } from 'vitest'
import { SCALE } from '../../../test/scale'
import { violationsOf } from '../../../test/axe'
import { withDashboard } from './dashboard-page'
import { STATES } from './states'

const WIDE = { width: 1440, height: 900 }
const PHONE = { width: 360, height: 740 }

interface Look {
  readonly viewport: typeof WIDE
  readonly colorScheme: 'light' | 'dark'
}

const LOOKS: Readonly<Record<string, Look>> = {
  'wide, light': { viewport: WIDE, colorScheme: 'light' },
  'phone, dark': { viewport: PHONE, colorScheme: 'dark' },
}

const MORE_LOOKS: typeof LOOKS = {
  'wide, dark': { viewport: WIDE, colorScheme: 'dark' },
  'phone, light': { viewport: PHONE, colorScheme: 'light' },
}

/** With a folder in it every look is kept as a picture, for eyes. */
const PICTURES = env['DASHBOARD_PICTURES']

const isQuick = PICTURES === undefined && SCALE === 'quick'
const looks = Object.entries(isQuick ? LOOKS : { ...LOOKS, ...MORE_LOOKS })
/** The quick lane takes turns. */
const looksOf = (turn: number) => (isQuick ? looks.filter((_, index) => index === turn % looks.length) : looks)

/** What has less room than it needs. */
function clipped(page: Page): Promise<string[]> {
  return page.evaluate(() =>
    [
      ...document.querySelectorAll<HTMLElement>(
        'html, .chip, .badge, .count, h1, h2, button:not(.timeline-row), dt, dd',
      ),
    ]
      .filter((element) => element.checkVisibility() && element.scrollWidth > element.clientWidth + 1)
      .filter((element) => !element.matches('.visually-hidden') && getComputedStyle(element).display !== 'inline')
      .map((element) => element.outerHTML.slice(0, 200)),
  )
}

test('every state is accessible, easy to read and complete, on a wide screen and on a phone', () =>
  withDashboard(
    async (dashboard) => {
      const { page, complaints } = dashboard
      for (const [turn, [state, show]] of STATES.entries()) {
        await page.setViewportSize(WIDE)
        await show(dashboard)
        for (const [name, { viewport, colorScheme }] of looksOf(turn)) {
          const message = `${state}, ${name}`
          await page.setViewportSize(viewport)
          await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
          if (PICTURES !== undefined) await page.screenshot({ path: join(PICTURES, `${message}.png`) })
          // What depends on the width hears of it in the next frame.
          await expect.poll(() => clipped(page), { message }).toEqual([])
          expect.soft(await violationsOf(page), message).toEqual([])
        }
      }
      expect(complaints.splice(0).every((text) => text.includes('404'))).toBe(true)
    },
    // The script of axe is none of the page's own.
    { context: { bypassCSP: true } },
  ))
