import { join } from 'node:path'
import { env } from 'node:process'
import type { Page } from 'playwright'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { SCALE } from '../../../../test/scale'
import { violationsOf } from '../../../../test/axe'
import { answer, button, type ChatSite, openSite, say, signIn, textOf } from './chat-site'

const WIDE = { width: 1280, height: 800 }
const PHONE = { width: 360, height: 740 }

const LOOKS = [
  { name: 'wide, light', viewport: WIDE, colorScheme: 'light', isQuick: true },
  { name: 'phone, dark', viewport: PHONE, colorScheme: 'dark', isQuick: true },
  { name: 'wide, dark', viewport: WIDE, colorScheme: 'dark', isQuick: false },
  { name: 'phone, light', viewport: PHONE, colorScheme: 'light', isQuick: false },
] as const

/** With a folder in it every look is kept as a picture, for eyes. */
const PICTURES = env['AGENTIC_PICTURES']
const isQuickLane = PICTURES === undefined && SCALE === 'quick'
/** The quick lane takes turns. */
const looksOf = (turn: number) =>
  isQuickLane ? LOOKS.filter(({ isQuick }) => isQuick).filter((_, index) => index === turn % 2) : LOOKS

const EVERYTHING = `a tour\n
## A heading\n
- a list with \`code\` and a [link](https://example.com)
- another item\n
1. first
2. second\n
> A quotation.\n
\`\`\`ts
const total = lines.map((line) => line.amount).reduce((sum, amount) => sum + amount, 0) // and it goes on to the right
\`\`\`\n
| city | people |
|---|---|
| Kyoto | 1,464,000 |
| Osaka | 2,753,000 |\n
the end`

/** Each state comes after the one before it. */
const STATES: readonly (readonly [string, (page: Page, site: ChatSite) => Promise<unknown>])[] = [
  ['signing in', (page) => page.getByRole('button', { name: 'Ada' }).waitFor()],
  ['new chat', (page) => signIn(page)],
  [
    'conversation',
    async (page) => {
      await say(page, 'What is (1234 + 5678) * 9 / 4 ?')
      await expect.poll(() => textOf(answer(page).last())).toContain('15552')
      await say(page, EVERYTHING)
      await expect.poll(() => textOf(answer(page).last())).toContain('the end')
      await button(page, 'Stop').waitFor({ state: 'detached' })
      await page.locator('.tool-call summary').first().click()
    },
  ],
  [
    'asked',
    async (page) => {
      await say(page, 'note: oat milk, two lemons')
      await button(page, 'Approve').waitFor()
      await page.getByText('Waiting for you').locator('..').getByText('1').waitFor({ state: 'attached' })
    },
  ],
  ['what waits', (page, { url }) => page.goto(`${url}/approvals`).then(() => button(page, 'Approve').waitFor())],
  [
    'why not',
    async (page) => {
      await button(page, 'Refuse').click()
      await page.getByRole('textbox', { name: /Why not/ }).waitFor()
    },
  ],
  [
    'nothing waits',
    async (page) => {
      await button(page, 'Stop the run').click()
      await page.getByText('Nothing waits for you').waitFor()
    },
  ],
  [
    'interrupted',
    async (page, { url, mailbox, changeWorker }) => {
      await page.goto(url)
      await say(page, `/post_json ${JSON.stringify({ url: `http://${mailbox.host}/`, body: { text: 'hello' } })}`)
      await button(page, 'Approve').click()
      await expect.poll(() => mailbox.got.length).toBe(1)
      await changeWorker()
      await button(page, 'Call it again').waitFor()
      await page.getByText('nobody knows whether it did its work').waitFor()
    },
  ],
  [
    'settings',
    (page, { url }) => page.goto(`${url}/settings`).then(() => page.getByText('asks you first').first().waitFor()),
  ],
  [
    'settings of a provider',
    async (page) => {
      await page.getByLabel('Provider', { exact: true }).selectOption('openai-compatible')
      await page.getByLabel('API key').waitFor()
    },
  ],
  [
    'answering',
    async (page, { url }) => {
      await page.goto(url)
      await say(page, 'write 20000 words')
      await expect.poll(() => textOf(answer(page))).toContain('word-100 ')
      await say(page, 'And then?')
      await page.getByText('Queued').waitFor()
    },
  ],
  [
    'stopped',
    async (page) => {
      await button(page, 'Stop').click()
      await page.getByText('You stopped this.').waitFor()
      await expect.poll(() => textOf(answer(page).last())).toContain('And then?')
    },
  ],
  ['deleting', (page) => button(page, 'Delete this chat').click()],
  [
    'no such chat',
    (page, { url }) => page.goto(`${url}/chat/nothing`).then(() => page.getByText('no such chat').waitFor()),
  ],
]

let site: ChatSite
beforeAll(async () => {
  site = await openSite()
})
afterAll(() => site.close())

it('every state is accessible and complete, on a wide screen and on a phone', () =>
  site.withTabs(
    async ({ open }) => {
      const page = await open()
      for (const [turn, [state, show]] of STATES.entries()) {
        await page.setViewportSize(WIDE)
        await show(page, site)
        for (const { name, viewport, colorScheme } of looksOf(turn)) {
          await page.setViewportSize(viewport)
          await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
          await lookAt(page, `${state}, ${name}`)
        }
      }
    },
    // The script of axe is none of the page's own.
    { bypassCSP: true },
  ))

it('has its chats and settings at hand on a phone', () =>
  site.withTabs(
    async ({ open }) => {
      const page = await open()
      await page.setViewportSize(PHONE)
      await signIn(page)
      expect(await page.getByRole('link', { name: 'Settings' }).isVisible()).toBe(false)
      await button(page, 'Chats and settings').click()
      await page.getByRole('link', { name: 'Settings' }).waitFor()
      await lookAt(page, 'sidebar, phone')
      await page.getByRole('link', { name: 'Settings' }).click()
      await page.getByRole('heading', { name: 'Settings' }).waitFor()
      await page.getByRole('link', { name: 'Settings' }).waitFor({ state: 'hidden' })
    },
    { bypassCSP: true },
  ))

it('is used by keyboard alone', () =>
  site.withTabs(async ({ open }) => {
    const page = await open()
    await page.getByRole('button', { name: 'Ada' }).waitFor()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.getByRole('textbox', { name: 'Message' }).focus()
    await page.keyboard.type('one')
    await page.keyboard.press('Shift+Enter')
    await page.keyboard.type('two')
    await page.keyboard.press('Enter')
    await expect.poll(() => textOf(answer(page))).toMatch(/one\s*two/)
    expect(await page.locator('.bubble').textContent()).toBe('one\ntwo')
    await page.getByRole('button', { name: 'Skip to the content' }).focus()
    await page.keyboard.press('Enter')
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('content')
  }))

async function lookAt(page: Page, name: string): Promise<void> {
  if (PICTURES !== undefined) await page.screenshot({ path: join(PICTURES, `${name}.png`) })
  // The page hears of another width a moment after its styles do, and lays its sidebar anew.
  await expect.poll(() => clipped(page), { message: name }).toEqual([])
  expect.soft(await violationsOf(page), name).toEqual([])
}

/** What has less room than it needs. */
function clipped(page: Page): Promise<string[]> {
  return page.evaluate(() =>
    [...document.querySelectorAll<HTMLElement>('html, main, .card, .badge, .count, h2, h3, button, label, .bubble')]
      .filter((element) => element.checkVisibility() && element.scrollWidth > element.clientWidth + 1)
      .filter((element) => !element.matches('.visually-hidden') && getComputedStyle(element).display !== 'inline')
      .map((element) => element.outerHTML.slice(0, 200)),
  )
}
