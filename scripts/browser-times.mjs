import { createReadStream, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { requireBrowser } from './browser.mjs'
import { ROOT } from './pnpm.mjs'
import { withBlock } from './written-block.mjs'

const PAGE = join(ROOT, 'docs', 'browser.md')
const BUILT = join(ROOT, 'packages', 'durably', 'dist', 'browser')
const TYPES = { '.js': 'text/javascript', '.wasm': 'application/wasm' }
const ISOLATED = { 'Cross-Origin-Opener-Policy': 'same-origin', 'Cross-Origin-Embedder-Policy': 'require-corp' }

/** SQLite's own choice first. */
const JOURNAL_MODES = ['delete', 'persist', 'truncate']
const WRITES = 100
const WRITES_IN_TURN = 20
/** A machine that is busy with something else only makes things slower: the best of a few counts. */
const ROUNDS = 2

const HTML = `<!doctype html><link rel="icon" href="data:,"><script type="module">
  import { createDurably, sqlocal } from '/durably.js'
  Object.assign(window, { createDurably, sqlocal })
</script>`

function serve() {
  const server = createServer(({ url }, response) => {
    if (url === '/') return response.writeHead(200, { ...ISOLATED, 'Content-Type': 'text/html' }).end(HTML)
    const file = join(BUILT, url.slice(1))
    if (!existsSync(file)) return response.writeHead(404).end()
    response.writeHead(200, { ...ISOLATED, 'Content-Type': TYPES[extname(file)] ?? 'text/plain' })
    return createReadStream(file).pipe(response)
  })
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)))
}

/** Runs in the page: opens a database and leaves behind what can be timed. */
async function open({ file, mode }) {
  const input = { '~standard': { version: 1, vendor: 'times', validate: (value) => ({ value }) } }
  const onInit = () => [{ sql: `pragma journal_mode = ${mode}`, params: [] }]
  const dialect = window.sqlocal({ databasePath: file, onInit })
  const durably = window.createDurably({ dialect })
  await durably.migrate()
  const { client } = dialect
  await client.sql('create table if not exists rows (id integer primary key, value text) strict')
  const job = durably.defineJob({ name: 'steps', input }, async (ctx, steps) => {
    for (let step = 0; step < steps; step++) await ctx.run(`step ${step}`, () => ({ step }))
  })
  const each = async (count, write) => {
    const started = performance.now()
    await write()
    return (performance.now() - started) / count
  }
  window.times = {
    insert: (count) =>
      each(count, async () => {
        for (let n = 0; n < count; n++) await client.sql('insert into rows (value) values (?)', 'a value')
      }),
    step: async (count) => {
      await job.trigger(count)
      return each(count, () => durably.runUntilIdle())
    },
    trigger: (count) =>
      each(count, async () => {
        for (let n = 0; n < count; n++) await durably.trigger('elsewhere', n)
      }),
    close: () => durably.close(),
  }
}

async function measureMode({ tabs, mode }) {
  const [one, two] = tabs
  const file = `times-${mode}-${Math.random()}.sqlite3`
  for (const tab of tabs) await tab.evaluate(open, { file, mode })
  const insert = await one.evaluate((count) => window.times.insert(count), WRITES)
  const step = await one.evaluate((count) => window.times.step(count), WRITES)
  const trigger = await one.evaluate((count) => window.times.trigger(count), WRITES)
  const both = await Promise.all(
    [one, two].map((tab) => tab.evaluate((count) => window.times.trigger(count), WRITES_IN_TURN)),
  )
  for (const tab of tabs) await tab.evaluate(() => window.times.close())
  return { insert, step, trigger, inTurn: Math.max(...both) / 2 }
}

async function measureAll(url) {
  const { chromium } = createRequire(join(ROOT, 'test', 'package.json'))('playwright')
  const browser = await chromium.launch({ executablePath: requireBrowser(), args: ['--no-sandbox'] })
  const context = await browser.newContext()
  const tabs = [await context.newPage(), await context.newPage()]
  for (const tab of tabs) {
    await tab.goto(url)
    await tab.waitForFunction(() => 'sqlocal' in window)
  }
  const best = {}
  for (let round = 0; round < ROUNDS; round++) {
    for (const mode of JOURNAL_MODES) {
      const times = await measureMode({ tabs, mode })
      best[mode] = Object.fromEntries(
        Object.entries(times).map(([name, ms]) => [name, Math.min(ms, best[mode]?.[name] ?? ms)]),
      )
    }
  }
  const version = browser.version()
  await browser.close()
  return { best, version }
}

function tableOf({ best, version }) {
  const rows = JOURNAL_MODES.map((mode) => {
    const { insert, step, trigger, inTurn } = best[mode]
    return `| \`${mode}\` | ${[insert, step, trigger, inTurn].map((ms) => `${ms.toFixed(1)} ms`).join(' | ')} |`
  })
  return [
    `Headless Chromium ${version.split('.')[0]} on Linux, two cores; milliseconds for each:`,
    '',
    '| `journal_mode` | insert of one row | step | trigger | trigger, two tabs in turn |',
    '|---|---|---|---|---|',
    ...rows,
  ].join('\n')
}

/** Measures what a commit in OPFS takes; `--update` writes it into the docs. */
async function main({ update }) {
  const server = await serve()
  const table = tableOf(await measureAll(`http://127.0.0.1:${server.address().port}/`))
  server.close()
  process.stdout.write(`${table}\n`)
  if (update) writeFileSync(PAGE, withBlock(readFileSync(PAGE, 'utf8'), 'times', table))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main({ update: process.argv.includes('--update') })
