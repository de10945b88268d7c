import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { chromium, type Browser, type Page } from 'playwright'
import sqlocal from 'sqlocal/vite'
import { createServer, type ViteDevServer } from 'vite'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { chromiumOptions } from '../../../../test/chromium'
import { itInFullLane } from '../../../../test/full-lane'
import { PATIENCE_MS } from '../../../../test/pace'
import { ROOT } from '../../../../test/root'

const SOURCES = join(ROOT, 'packages', 'durably', 'src')
const HTML = '<!doctype html><link rel="icon" href="data:,"><script type="module" src="./app.js"></script>'

interface App {
  readonly version: string
  readonly told: readonly string[]
  /** Steps whose code has begun, as `version step`. */
  readonly begun: string[]
  run(): Promise<{ readonly output: unknown }>
  trigger(): Promise<{ readonly id: string }>
  statusOf(id: string): Promise<unknown>
  letGo(): void
}

declare global {
  interface Window {
    readonly app: App
  }
}

/** A page as people write it: the module makes its instance, and takes its own next version. */
function codeOf(version: string, more = ''): string {
  return `
import { createDurably } from '@coji/durably'
import { withTabLeader } from '@coji/durably/plugins'
import { sqlocal } from '@coji/durably/sqlocal'

const told = []
const begun = window.app?.begun ?? []
const durably = createDurably({ dialect: sqlocal('hmr.sqlite3') })
durably.use(withTabLeader())
durably.onError((error) => told.push(String(error)))

const input = { '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }) } }
let letGo
const isLetGo = new Promise((resolve) => { letGo = resolve })
const job = durably.defineJob({ name: 'job', input }, async (ctx, { isLong }) => {
  await ctx.run('first', () => begun.push('${version} first'))
  await ctx.run('second', async () => {
    begun.push('${version} second')
    if (isLong && '${version}' === 'one') await isLetGo
  })
  return '${version}'
})

await durably.migrate()
durably.start()
window.app = {
  version: '${version}',
  told,
  begun,
  letGo,
  run: () => job.triggerAndWait({ isLong: false }),
  trigger: () => job.trigger({ isLong: true }),
  statusOf: async (id) => { const { status, output } = await durably.getRun(id); return { status, output } },
}
import.meta.hot.accept()
${more}`
}

let browser: Browser
let folder = ''
let server: ViteDevServer
let page: Page

beforeAll(async () => {
  browser = await chromium.launch(chromiumOptions())
})

afterAll(() => browser.close())

beforeEach(async () => {
  mkdirSync(join(ROOT, '.tmp'), { recursive: true })
  folder = mkdtempSync(join(ROOT, '.tmp', 'hmr-'))
  writeFileSync(join(folder, 'index.html'), HTML)
  server = await createServer({
    root: folder,
    configFile: false,
    logLevel: 'error',
    cacheDir: join(folder, 'cache'),
    plugins: [sqlocal()],
    resolve: {
      conditions: ['@coji/durably-source', 'module', 'browser', 'development|production'],
      alias: [
        { find: /^@coji\/durably$/, replacement: join(SOURCES, 'index.ts') },
        { find: /^@coji\/durably\/(plugins|sqlocal)$/, replacement: join(SOURCES, '$1.ts') },
      ],
    },
    // What is found on the way would load the page again.
    optimizeDeps: { noDiscovery: true, include: [] },
    server: { host: '127.0.0.1', port: 0, fs: { allow: [ROOT] } },
  })
})

afterEach(async () => {
  await page.context().close()
  await server.close()
  rmSync(folder, { recursive: true, force: true })
})

/** Opens the page with its first version. */
async function visit(code: string): Promise<void> {
  writeFileSync(join(folder, 'app.js'), code)
  await server.listen()
  page = await (await browser.newContext()).newPage()
  page.setDefaultTimeout(PATIENCE_MS)
  await page.goto(server.resolvedUrls?.local[0] ?? '')
  await untilVersion('one')
}

async function edit(code: string, version: string): Promise<void> {
  writeFileSync(join(folder, 'app.js'), code)
  await untilVersion(version)
}

const untilVersion = (version: string) => page.waitForFunction((wanted) => window.app?.version === wanted, version)
const run = () => page.evaluate(async () => (await window.app.run()).output)
const told = () => page.evaluate(() => window.app.told)

it('after each edit the new code runs, of the old one no worker is left, and the page hears how to close it', async () => {
  await visit(codeOf('one'))
  expect(await run()).toBe('one')
  const workers = page.workers().length
  for (const version of ['two', 'three']) {
    await edit(codeOf(version), version)
    expect([await run(), await run()]).toEqual([version, version])
    expect(await told()).toEqual([expect.stringContaining('import.meta.hot.dispose(() => durably.close())')])
    await expect.poll(() => page.workers().length).toBe(workers)
  }
})

itInFullLane('a run in the middle goes on with the new code after its last step', async () => {
  await visit(codeOf('one'))
  const { id } = await page.evaluate(() => window.app.trigger())
  await page.waitForFunction(() => window.app.begun.length === 2)
  await edit(codeOf('two'), 'two')
  await expect
    .poll(() => page.evaluate((runId) => window.app.statusOf(runId), id))
    .toEqual({ status: 'completed', output: 'two' })
  expect(await page.evaluate(() => window.app.begun)).toEqual(['one first', 'one second', 'two second'])
})

itInFullLane('nothing is said to code that closes its instance', async () => {
  const dispose = 'import.meta.hot.dispose(() => durably.close())'
  await visit(codeOf('one', dispose))
  await edit(codeOf('two', dispose), 'two')
  expect(await run()).toBe('two')
  expect(await told()).toEqual([])
})
