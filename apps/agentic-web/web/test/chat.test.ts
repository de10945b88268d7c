import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { itInFullLane } from '../../../../test/full-lane'
import { scaled } from '../../../../test/scale'
import { answer, button, type ChatSite, openSite, say, signIn, textOf } from './chat-site'

let site: ChatSite

beforeAll(async () => {
  site = await openSite()
})
afterAll(() => site.close())

const EVIL = [
  '![a](http://evil.test/a.png?secret)',
  '<img src=http://evil.test/b.png onerror=alert(1)>',
  '<script>alert(2)</script><style>*{background:url(http://evil.test/c)}</style>',
  '[click](javascript:alert(3)) [data](data:text/html,x)',
]
const words = (count: number) => Array.from({ length: count }, (_, index) => `word-${index + 1}`).join(' ')

describe.each(['runs', 'chat'])('14.5: the page, sending by the contract of %s', (contract) => {
  /** What comes back is the same by both. */
  const itOnceInQuickLane = contract === 'runs' ? it : itInFullLane
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
      await expect.poll(() => textOf(answer(page).last())).toContain('calculator says: {"value":20}')
      expect(await tool.getByText('expression', { exact: true }).isVisible()).toBe(false)
      await tool.locator('summary').click()
      expect(await tool.getByText('expression', { exact: true }).isVisible()).toBe(true)
      await page.getByRole('link', { name: 'What is (2 + 3) * 4 ?' }).first().waitFor()
      expect(sent.filter((line) => line.startsWith('POST /api/')).at(-1)).toMatch(
        contract === 'runs' ? /^POST \/api\/runs$/ : /^POST \/api\/chat\/[\w-]+$/,
      )
    }))

  itOnceInQuickLane('goes on where it was after a reload in the middle of an answer', () =>
    site.withTabs(async ({ open }) => {
      const page = await open(start)
      await signIn(page)
      await say(page, 'write 150 words')
      await expect.poll(() => textOf(answer(page))).toContain('word-20 ')
      await page.reload()
      // What is shown first is no less than what was there.
      expect((await textOf(answer(page))).startsWith(words(20))).toBe(true)
      await expect.poll(() => textOf(answer(page))).toBe(words(150))
      await button(page, 'Stop').waitFor({ state: 'detached' })
    }),
  )

  itOnceInQuickLane('is answered when its tab is closed in the middle, and is there whole in another one', () =>
    site.withTabs(async ({ open }) => {
      const page = await open(start)
      await signIn(page)
      await say(page, 'write 400 words')
      await expect.poll(() => textOf(answer(page))).toContain('word-20 ')
      const { pathname } = new URL(page.url())
      const { request } = page.context()
      await Promise.all([page.waitForEvent('close'), page.close({ runBeforeUnload: true })])
      const stateNow = async () => {
        return (await (await request.get(`${site.url}${pathname.replace('/chat/', '/api/sessions/')}`)).json()).state
      }
      await expect.poll(stateNow).not.toBe('running')
      expect(await stateNow()).toBe('completed')
      const other = await open(pathname)
      await expect.poll(() => textOf(answer(other))).toBe(words(400))
    }),
  )

  itOnceInQuickLane('loses and repeats nothing while the apis are started anew', () =>
    site.withTabs(async ({ open, complaints }) => {
      const page = await open(start)
      await signIn(page)
      await say(page, 'write 200 words')
      await expect.poll(() => textOf(answer(page))).toContain('word-20 ')
      await page.evaluate(watchShrinking)
      await site.stopApis()
      expect((await textOf(answer(page))).startsWith(words(20))).toBe(true)
      await site.startApis()
      await expect.poll(() => textOf(answer(page))).toBe(words(200))
      expect(await page.evaluate(() => Reflect.get(window, 'shrunk'))).toBe(false)
      // What was being answered when its server went away.
      expect(complaints.splice(0).filter((text) => !text.includes('status of 500'))).toEqual([])
    }),
  )

  itOnceInQuickLane('stops, says so, and goes on with the next message', () =>
    site.withTabs(async ({ open }) => {
      const page = await open(start)
      await signIn(page)
      await say(page, 'write 20000 words')
      await expect.poll(() => textOf(answer(page))).toContain('word-20 ')
      await button(page, 'Stop').click()
      await page.getByText('You stopped this.').waitFor()
      const shown = await textOf(answer(page))
      await page.reload()
      await page.getByText('You stopped this.').waitFor()
      expect(await textOf(answer(page))).toBe(shown)
      await say(page, 'Hello again')
      await expect.poll(() => textOf(answer(page))).toContain('You said: Hello again.')
    }),
  )

  it('asks before a call, takes edited arguments, and offers the file', () =>
    site.withTabs(async ({ open }) => {
      const page = await open(start)
      await signIn(page)
      await say(page, 'note: buy milk')
      const form = page.getByRole('form', { name: 'Decide about write_file' })
      expect(await form.getByRole('textbox', { name: 'text' }).inputValue()).toBe('buy milk\n')
      await form.getByRole('textbox', { name: 'path' }).fill('list.md')
      await form.getByRole('button', { name: 'Edit as JSON' }).click()
      const field = form.getByRole('textbox', { name: 'Arguments' })
      expect(JSON.parse(await field.inputValue())).toEqual({ path: 'list.md', text: 'buy milk\n' })
      await field.fill('{ "path": ')
      await form.getByRole('button', { name: 'Approve' }).click()
      await form.getByText('This is no JSON').waitFor()
      await field.fill('{ "path": 7 }')
      await form.getByRole('button', { name: 'Approve' }).click()
      await form.getByText(/makes no sense/).waitFor()
      await field.fill('{ "path": "list.md", "text": "buy bread" }')
      await form.getByRole('button', { name: 'Approve' }).click()
      await expect.poll(() => textOf(answer(page).last())).toContain('"written":9')
      await page.locator('.tool-call summary').click()
      await page.getByText('Arguments, edited by you').waitFor()
      await button(page, /Files/).click()
      expect(await page.getByRole('link', { name: 'list.md' }).getAttribute('download')).toBe('list.md')
    }))

  itOnceInQuickLane('shows the same in two tabs, and a decision in one is heard in the other', () =>
    site.withTabs(async ({ open }) => {
      const first = await open(start)
      await signIn(first)
      await say(first, `note: eggs for ${contract}`)
      await first.getByRole('form', { name: 'Decide about write_file' }).waitFor()
      const second = await open('/approvals')
      const card = second.locator('.card', { hasText: `note: eggs for ${contract}` })
      await card.getByRole('button', { name: 'Refuse' }).click()
      await card.getByRole('textbox', { name: /Why not/ }).fill('we have some')
      await card.getByRole('button', { name: 'Refuse' }).click()
      await card.waitFor({ state: 'detached' })
      await expect.poll(() => textOf(answer(first).last())).toContain('refused this call: we have some')
      await second.goto(first.url())
      await expect.poll(() => textOf(answer(second).last())).toContain('refused this call: we have some')
      await say(second, 'Is anybody there?')
      await expect.poll(() => textOf(answer(first).last())).toContain('You said: Is anybody there?')
    }),
  )
})

/** Other tests of the quick lane speak the new one. */
const OLD_FIRST = ['chat', 'runs'].slice(0, scaled({ quick: 1, full: 2 }))

describe.each(OLD_FIRST)('14.5: what goes wrong, by the contract of %s', (contract) => {
  const start = `/?contract=${contract}`

  it('says that an answer began again when its worker went away, and shows it whole', () =>
    site.withTabs(async ({ open }) => {
      const page = await open(start)
      await signIn(page)
      // It is never through before it goes away.
      await site.changeWorker({ DEMO_WORD_MS: '200' })
      await say(page, 'write 200 words')
      await expect.poll(() => textOf(answer(page))).toContain('word-3 ')
      await site.changeWorker()
      await page.getByText('the model was asked again').waitFor()
      await expect.poll(() => textOf(answer(page))).toBe(words(200))
      await page.reload()
      await expect.poll(() => textOf(answer(page))).toBe(words(200))
    }))

  it('shows what a model wrote as text: it fetches nothing, runs nothing, and no link of it runs anything', () =>
    site.withTabs(async ({ open, complaints }) => {
      const page = await open(start)
      await signIn(page)
      const asked = new Set<string>()
      page.on('request', (request) => asked.add(new URL(request.url()).host))
      await say(page, [...EVIL, 'the end'].join('\n\n'))
      await expect.poll(() => textOf(answer(page))).toContain('the end')
      expect([...asked]).toEqual([new URL(site.url).host])
      expect(await answer(page).locator('img, script, style, iframe, form').count()).toBe(0)
      const links = await answer(page)
        .locator('a')
        .evaluateAll((all) => all.map((link) => link.getAttribute('href')))
      expect(links.filter((href) => href?.includes('script') || href?.startsWith('data:'))).toEqual([])
      // Should something get through, the policy of the page is there.
      const isRefused = () =>
        fetch('http://evil.test/').then(
          () => false,
          () => true,
        )
      expect(await page.evaluate(isRefused)).toBe(true)
      expect(complaints.splice(0).join()).toContain('Content Security Policy')
    }))

  it('says that a model failed, and tries again', () =>
    site.withTabs(async ({ open }) => {
      const page = await open('/settings')
      await page.getByRole('button', { name: 'Grace' }).click()
      await page.getByLabel('Provider', { exact: true }).selectOption('openai-compatible')
      await page.getByLabel('Address').fill('http://elsewhere.test/v1')
      await button(page, 'Save').click()
      await page.getByText('no host of MODEL_HOSTS').waitFor()
      await page.getByLabel('Address').fill(`${site.url}/model/v1`)
      await button(page, 'Save').click()
      await page.getByText('Saved.').waitFor()
      const chat = await open(start)
      await say(chat, 'Anybody?')
      await chat.getByText('This did not work.').waitFor()
      await page.getByLabel('Provider', { exact: true }).selectOption('demo')
      const isStored = page.waitForResponse((answered) => answered.request().method() === 'PUT' && answered.ok())
      await button(page, 'Save').click()
      await isStored
      await button(chat, 'Try again').click()
      await expect.poll(() => textOf(answer(chat))).toContain('You said: Anybody?')
    }))
})

describe('the page', () => {
  it('stores a key and never shows it again', () =>
    site.withTabs(async ({ open }) => {
      const page = await open('/settings')
      await page.getByRole('button', { name: 'Grace' }).click()
      await page.getByLabel('Provider', { exact: true }).selectOption('openai-compatible')
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
      await page.getByLabel('Provider', { exact: true }).selectOption('demo')
      await button(page, 'Save').click()
    }))

  it('signs in at a provider, connects an account at one and lets go of it again, and says when that did not work', () =>
    site.withTabs(async ({ open }) => {
      const page = await open('/settings')
      await page.getByRole('link', { name: 'Sign in' }).click()
      const card = page.getByRole('region', { name: 'Account at the model provider' })
      site.issuer.state.agrees = false
      await card.getByRole('button', { name: 'Connect' }).click()
      await page.getByText('The account was not connected (denied).').waitFor()
      site.issuer.state.agrees = true
      await card.getByRole('button', { name: 'Connect' }).click()
      await page.getByText('The account is connected.').waitFor()
      await card.getByText(/^Connected on /).waitFor()
      expect(page.url()).toBe(`${site.url}/settings`)
      await page.reload()
      await card.getByRole('button', { name: 'Disconnect' }).click()
      await page.getByText('The account is not connected any more.').waitFor()
      await card.getByRole('button', { name: 'Connect', exact: true }).waitFor()
      expect(await page.getByText('The account is connected.').count()).toBe(0)
    }))

  it('renames and deletes a chat, and shows one person nothing of another', () =>
    site.withTabs(async ({ open }) => {
      const page = await open()
      await signIn(page)
      await say(page, 'Something of Ada')
      await expect.poll(() => textOf(answer(page))).toContain('You said')
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
