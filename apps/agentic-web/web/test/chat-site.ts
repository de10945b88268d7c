import { type Browser, type BrowserContextOptions, chromium, type Locator, type Page } from 'playwright'
import { expect } from 'vitest'
import { chromiumOptions } from '../../../../test/chromium'
import { PATIENCE_MS } from '../../../../test/pace'
import type { RunningApi } from '../../src/api/start'
import type { Env } from '../../src/config'
import { deploy } from '../../test/deployment'
import { CLIENT, startIssuer } from '../../test/issuer'
import { startMailbox } from '../../test/mailbox'
import { CALLBACKS } from '../../test/oauth-site'
import { startBalancer } from './balancer'
import { buildPage } from './built-page'

export type ChatSite = Awaited<ReturnType<typeof openSite>>

/** Everything but the browser's tabs: two apis behind a balancer, a worker, the built page, a provider of accounts. */
export async function openSite() {
  const [folder, browser] = await Promise.all([buildPage(), chromium.launch(chromiumOptions())])
  const balancer = await startBalancer(folder)
  const issuer = await startIssuer({ redirectUris: Object.values(CALLBACKS).map((path) => `${balancer.url}${path}`) })
  const mailbox = await startMailbox()
  // Words take a moment, so that an answer can be caught in the middle.
  const deployment = await deploy({
    PUBLIC_URL: balancer.url,
    DEMO_WORD_MS: '4',
    DRAIN_MS: '0',
    MODEL_HOSTS: 'localhost,api.openai.com',
    FETCH_HOSTS: mailbox.host,
    SIGN_IN_ISSUER: issuer.url,
    SIGN_IN_CLIENT_ID: CLIENT.id,
    SIGN_IN_CLIENT_SECRET: CLIENT.secret,
    OPENAI_OAUTH_ISSUER: issuer.url,
    OPENAI_OAUTH_CLIENT_ID: CLIENT.id,
    OPENAI_OAUTH_CLIENT_SECRET: CLIENT.secret,
  })
  const apis: RunningApi[] = []
  const startApis = async () => {
    apis.push(await deployment.startApi(), await deployment.startApi())
    balancer.targets = apis.map(({ url }) => url)
  }
  const stopApis = async () => {
    balancer.targets = []
    await Promise.all(apis.splice(0).map((api) => api.stop()))
  }
  await startApis()
  let worker = await deployment.startWorker()
  return {
    url: balancer.url,
    issuer,
    mailbox,
    startApis,
    stopApis,
    /** One goes away in the middle of what it does, and another one comes. */
    async changeWorker(env: Env = {}) {
      await worker.stop()
      worker = await deployment.startWorker(env)
    },
    withTabs: (use: (tabs: Tabs) => Promise<void>, options?: BrowserContextOptions) =>
      withTabs({ browser, url: balancer.url }, use, options),
    async close() {
      await browser.close()
      await deployment.end()
      await balancer.close()
      await issuer.end()
      mailbox.end()
    },
  }
}

export interface Tabs {
  /** A new tab of the same browser. */
  open(path?: string): Promise<Page>
  /** What the console says that it should not. */
  readonly complaints: string[]
}

interface Opened {
  readonly browser: Browser
  readonly url: string
}

/** Browsers write down each answer that is no success; what the page makes of it is looked at in the page. */
const REFUSED = /^Failed to load resource: (?:the server responded with a status of (?:4|50[234])|net::ERR_)/

/** A browser of nobody yet. Demands that the console stays empty. */
export async function withTabs(
  { browser, url }: Opened,
  use: (tabs: Tabs) => Promise<void>,
  options: BrowserContextOptions = {},
): Promise<void> {
  const context = await browser.newContext(options)
  context.setDefaultTimeout(PATIENCE_MS)
  const complaints: string[] = []
  context.on('console', (message) => {
    const isTold = ['error', 'warning'].includes(message.type()) && !REFUSED.test(message.text())
    if (isTold) complaints.push(message.text())
  })
  context.on('weberror', (error) => complaints.push(`uncaught: ${error.error().message}`))
  try {
    const open = async (path = '/') => {
      const page = await context.newPage()
      await page.goto(url + path)
      return page
    }
    await use({ open, complaints })
    expect(complaints).toEqual([])
  } finally {
    await context.close()
  }
}

export async function signIn(page: Page, name = 'Ada'): Promise<void> {
  await page.getByRole('button', { name }).click()
  await page.getByRole('heading', { name: 'New chat' }).waitFor()
}

export async function say(page: Page, text: string): Promise<void> {
  await page.getByRole('textbox', { name: 'Message' }).fill(text)
  await page.getByRole('button', { name: 'Send' }).click()
}

/** The last answer, as it is shown. */
export const answer = (page: Page) => page.locator('.run').last().locator('.prose')
export const textOf = async (element: Locator) => ((await element.textContent()) ?? '').trim()
export const button = (page: Page, name: string | RegExp) => page.getByRole('button', { name, exact: true })
