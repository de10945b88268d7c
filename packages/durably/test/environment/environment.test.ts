import { chromium, type Browser, type BrowserContext, type Page } from 'playwright'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { chromiumOptions } from '../../../../test/chromium'
import { paced } from '../../../../test/pace'
import type { Answer, OpenConfig } from './page-api'
import { buildPage, ISOLATED, type PageServer, removePage, servePage } from './page-server'
import { itInFullLane } from '../../../../test/full-lane'
import { inLane } from '../../../../test/scale'

const IN_TIME_MS = paced(15_000)
const DATABASE = 'jobs.sqlite3'

/** What each refusal says first of all; no other may say it. */
const REASONS = {
  notIsolated: /not cross-origin isolated/i,
  insecure: /not a secure context/i,
  noFileSystem: /has no origin private file system/i,
  notOpened: /SQLite did not open/i,
  noWorker: /worker of SQLite failed|sqlite3\.wasm/i,
}

let folder = ''
let browser: Browser
let bare: PageServer
let isolated: PageServer
let context: BrowserContext

beforeAll(async () => {
  folder = await buildPage()
  bare = await servePage({ folder, headers: {} })
  isolated = await servePage({ folder, headers: ISOLATED })
  const options = chromiumOptions()
  browser = await chromium.launch({
    ...options,
    args: [...(options.args ?? []), '--host-resolver-rules=MAP insecure.test 127.0.0.1'],
  })
})

afterEach(async () => {
  await context.close()
})

afterAll(async () => {
  await browser.close()
  await bare.close()
  await isolated.close()
  removePage(folder)
})

interface VisitParams {
  readonly url: string
  readonly before?: (page: Page) => Promise<unknown>
}

async function visit({ url, before }: VisitParams): Promise<Page> {
  context = await browser.newContext()
  const page = await context.newPage()
  await before?.(page)
  await page.goto(url)
  await page.waitForFunction(() => 'api' in window)
  return page
}

const urlOf = (server: PageServer, host = '127.0.0.1') => `http://${host}:${server.port}/`

const migrate = (page: Page, config: OpenConfig = { databasePath: DATABASE }) =>
  page.evaluate((given) => window.api.migrate(given), config)

const withoutFileSystem = (page: Page) =>
  page.addInitScript(() => {
    Reflect.deleteProperty(StorageManager.prototype, 'getDirectory')
  })

const WORKER = /\/worker-[^/]*\.js$/
const SQLITE = /\/sqlite3-[^/]*\.wasm$/
const FILE_WORKER = /\/sqlite3-opfs-async-proxy-[^/]*\.js$/

const aborted = (file: RegExp) => (page: Page) => page.route(file, (route) => route.abort())

/** Does something with a page whose host lacks a file. */
async function withoutFile(lacking: RegExp, act: (page: Page) => Promise<void>): Promise<void> {
  const server = await servePage({ folder, headers: ISOLATED, lacking })
  try {
    await act(await visit({ url: urlOf(server) }))
  } finally {
    await server.close()
  }
}

/** A refusal that names its reason, and no other reason, in time. */
function expectRefusal(answer: Answer, reason: keyof typeof REASONS): string {
  expect(answer).toMatchObject({ ok: false, isOurs: true, code: 'STORAGE_CANNOT_OPEN' })
  expect(answer.ms).toBeLessThan(IN_TIME_MS)
  const message = answer.ok ? '' : answer.message
  const named = Object.entries(REASONS).filter(([, pattern]) => pattern.test(message))
  expect(named.map(([name]) => name)).toEqual([reason])
  return message
}

describe('a page that cannot store', () => {
  it('stores when nothing is missing', async () => {
    const page = await visit({ url: urlOf(isolated) })
    expect(await migrate(page)).toMatchObject({ ok: true })
    expect(await page.evaluate(() => window.api.run('hello'))).toMatchObject({ ok: true, value: 5 })
    await page.reload()
    expect(await migrate(page)).toMatchObject({ ok: true })
    expect(await page.evaluate(() => window.api.runs())).toMatchObject({ value: [{ status: 'completed' }] })
  })

  it('hears which headers its host has to send', async () => {
    const page = await visit({ url: urlOf(bare) })
    const message = expectRefusal(await migrate(page), 'notIsolated')
    expect(message).toContain('Cross-Origin-Opener-Policy: same-origin')
    expect(message).toContain('Cross-Origin-Embedder-Policy: require-corp')
    expect(message).toContain('allowMemory')
    expectRefusal(await migrate(page), 'notIsolated')
  })

  it.each(inLane(['client', 'bare dialect'] as const, (through) => through === 'client'))(
    'hears the same with a %s of its own',
    async (through) => {
      const page = await visit({ url: urlOf(bare) })
      expectRefusal(await migrate(page, { databasePath: DATABASE, through }), 'notIsolated')
      expectRefusal(await migrate(page, { databasePath: DATABASE, through }), 'notIsolated')
    },
  )

  it('hears that it needs https', async () => {
    const page = await visit({ url: urlOf(isolated, 'insecure.test') })
    expect(await page.evaluate(() => window.isSecureContext)).toBe(false)
    const message = expectRefusal(await migrate(page), 'insecure')
    expect(message).toMatch(/https/i)
    expect(message).toMatch(/localhost/)
  })

  it('hears that its browser has no file system', async () => {
    const page = await visit({ url: urlOf(isolated), before: withoutFileSystem })
    const message = expectRefusal(await migrate(page), 'noFileSystem')
    expect(message).toContain('allowMemory')
    expect(message).not.toMatch(/Cross-Origin/)
  })

  itInFullLane('hears in time that the worker of its database cannot be reached', async () => {
    const page = await visit({ url: urlOf(isolated), before: aborted(WORKER) })
    expectRefusal(await migrate(page), 'noWorker')
    expectRefusal(await migrate(page), 'noWorker')
  })

  const lacking = [
    ['the worker of its database', WORKER, 'noWorker'],
    ['SQLite', SQLITE, 'noWorker'],
    ['the worker of the file system', FILE_WORKER, 'notOpened'],
  ] as const
  it.each(inLane(lacking, ([what]) => what !== 'SQLite'))(
    'hears in time that its host lacks %s',
    async (_, file, reason) => {
      await withoutFile(file, async (page) => {
        expectRefusal(await migrate(page), reason)
        expectRefusal(await migrate(page), reason)
      })
    },
  )

  const withoutStorage = [
    ['without the headers', () => visit({ url: urlOf(bare) })],
    ['without a file system', () => visit({ url: urlOf(isolated), before: withoutFileSystem })],
  ] as const
  it.each(inLane(withoutStorage, ([what]) => what === 'without the headers'))(
    'works in memory when it asks for it, %s',
    async (_, open) => {
      const page = await open()
      const config = { databasePath: DATABASE, allowMemory: true }
      expect(await migrate(page, config)).toMatchObject({ ok: true })
      expect(await page.evaluate(() => window.api.run('hello'))).toMatchObject({ ok: true, value: 5 })
      await page.reload()
      expect(await migrate(page, config)).toMatchObject({ ok: true })
      expect(await page.evaluate(() => window.api.runs())).toMatchObject({ ok: true, value: [] })
    },
  )
})

describe('a page in which nobody hears of the branches of an interrupted run', () => {
  it('has nothing of them in its console, and tells of others as ever', async () => {
    const uncaught: string[] = []
    const page = await visit({ url: urlOf(bare), before: async (opened) => listen(opened, uncaught) })
    for (const times of [1, 2]) {
      expect(await page.evaluate(() => window.api.interrupt())).toMatchObject({ ok: true })
      // It is rejected last.
      await expect.poll(() => uncaught.filter((message) => message === 'Not of the job.')).toHaveLength(times)
      expect(uncaught).toHaveLength(times)
    }
    expect(await page.evaluate(() => window.rejections)).toContain('Not of the job.')
  })

  itInFullLane('keeps them from listeners that came after the first of them', async () => {
    const uncaught: string[] = []
    const page = await visit({ url: urlOf(bare) })
    await page.evaluate(() => window.api.interrupt())
    await listen(page, uncaught)
    await page.evaluate(() => window.api.interrupt())
    await expect.poll(() => uncaught).toContain('Not of the job.')
    expect(uncaught).toEqual(['Not of the job.'])
    await expect.poll(() => page.evaluate(() => window.rejections)).toEqual(['Not of the job.'])
  })

  /** With a listener of the application, now and in what is loaded from now on. */
  async function listen(page: Page, uncaught: string[]): Promise<void> {
    const start = () => {
      const rejections: string[] = []
      Object.assign(window, { rejections })
      window.addEventListener('unhandledrejection', ({ reason }) => rejections.push(String(reason.message)))
    }
    page.on('pageerror', ({ message }) => uncaught.push(message))
    await page.addInitScript(start)
    await page.evaluate(start)
  }
})
