import { join } from 'node:path'
import { env } from 'node:process'
import type { Page } from 'playwright'
import { expect, test } from 'vitest'
import { SCALE } from '../../../test/scale'
import { violationsOf } from '../../../test/axe'
import { contrasts } from './contrast'
import { paintedContrasts } from './painted'
import { STATES } from './states'
import { withDemo } from './with-demo'

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
const PICTURES = env['DEMO_PICTURES']

const isQuick = PICTURES === undefined && SCALE === 'quick'
const looks = Object.entries(isQuick ? LOOKS : { ...LOOKS, ...MORE_LOOKS })
/** The quick lane takes turns. */
const looksOf = (turn: number) => (isQuick ? looks.filter((_, index) => index === turn % looks.length) : looks)
/** The index takes long to build, and only its result looks different. */
const states = isQuick ? STATES.filter(([state]) => state !== 'index') : STATES

async function keepPicture(page: Page, name: string): Promise<void> {
  if (PICTURES !== undefined) await page.screenshot({ path: join(PICTURES, `${name}.png`), fullPage: true })
}

async function hardToSee(page: Page): Promise<string[]> {
  const seen = await contrasts(page)
  expect(seen.length).toBeGreaterThan(5)
  return seen
    .filter(({ contrast, isLarge }) => contrast < (isLarge ? 3 : 4.5))
    .map(({ text, contrast }) => `${contrast.toFixed(2)}: ${text}`)
}

/** What has less room than it needs. */
function clipped(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const hasTooLittle = (element: HTMLElement): boolean => {
      // Times hang from their marks on the axis.
      const chart = element.matches('.tick') ? element.closest('.chart') : null
      if (chart === null) return element.scrollWidth > element.clientWidth + 1
      return element.getBoundingClientRect().right > chart.getBoundingClientRect().left + chart.clientWidth
    }
    return [...document.querySelectorAll<HTMLElement>('html, .step-time, .chip, .badge, .tick, h1, h2, h3, button')]
      .filter((element) => element.checkVisibility() && hasTooLittle(element))
      .map((element) => element.outerHTML.slice(0, 200))
  })
}

test('every state is easy to read, complete and accessible, on a wide screen and on a phone', () =>
  withDemo(
    async (demo) => {
      for (const [turn, [state, show]] of states.entries()) {
        const page = await show(demo)
        for (const [name, { viewport, colorScheme }] of looksOf(turn)) {
          const message = `${state}, ${name}`
          await page.setViewportSize(viewport)
          await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
          await keepPicture(page, message)
          expect.soft(await hardToSee(page), message).toEqual([])
          expect.soft(await clipped(page), message).toEqual([])
          expect.soft(await violationsOf(page), message).toEqual([])
        }
        await page.setViewportSize(WIDE)
      }
      const { page } = demo
      const items = page.getByRole('list', { name: 'Runs' }).getByRole('button')
      // A notice stays in sight, and would be in front of what is scrolled below it.
      await page.getByRole('button', { name: 'Dismiss' }).click()
      await page.emulateMedia({ forcedColors: 'active', reducedMotion: 'reduce' })
      for (let index = 0; index < (await items.count()); index++) {
        await items.nth(index).click()
        await page.locator(`.run-list li:nth-child(${index + 1}) [aria-current]`).waitFor()
        await page.locator('.bar').first().waitFor()
        const message = `forced colours, run ${index + 1}`
        await keepPicture(page, message)
        const bars = await paintedContrasts(page, '.steps', '.chart-row:nth-child(-n + 8) .bar')
        expect.soft(bars.length, message).toBeGreaterThan(0)
        expect.soft(Math.min(...bars), message).toBeGreaterThan(3)
      }
    },
    { viewport: WIDE, hasTouch: true },
  ))
