import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { basename, extname, join } from 'node:path'
import { chromium, type Browser, type Page } from 'playwright'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { chromiumOptions } from '../../../test/chromium'
import { builtFolder } from './built'

const BUILT = builtFolder()
const FOLDER = '/shop/assets/v3/durably/'
const TYPES: Readonly<Record<string, string>> = { '.js': 'text/javascript', '.wasm': 'application/wasm' }

const PAGE = `<!doctype html>
<link rel="icon" href="data:,">
<script type="module">
  import * as built from '${FOLDER}durably.js'

  const input = { '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }) } }
  window.names = Object.keys(built)
  window.double = async (databasePath, n) => {
    const durably = built.createDurably({ dialect: built.sqlocal(databasePath) })
    const job = durably.defineJob({ name: 'double', input }, (ctx, payload) => ctx.run('double', () => 2 * payload.n))
    await durably.migrate()
    durably.start()
    const { output } = await job.triggerAndWait({ n })
    await durably.close()
    return output
  }
</script>`

declare global {
  interface Window {
    readonly names: readonly string[]
    double(databasePath: string, n: number): Promise<number>
  }
}

let server: Server
let browser: Browser
let page: Page
const asked: string[] = []

/** A host that serves the files of the build from a deep folder and nothing else, to a page that is elsewhere. */
function createHost(): Server {
  return createServer(({ url = '/' }, response) => {
    response.setHeader('Cross-Origin-Opener-Policy', 'same-origin')
    response.setHeader('Cross-Origin-Embedder-Policy', 'require-corp')
    if (url === '/about/jobs') return response.setHeader('Content-Type', 'text/html').end(PAGE)
    asked.push(url)
    if (!url.startsWith(FOLDER)) return response.writeHead(404).end()
    const file = basename(url)
    return response.setHeader('Content-Type', TYPES[extname(file)] ?? 'text/plain').end(readFileSync(join(BUILT, file)))
  })
}

beforeAll(async () => {
  server = createHost().listen(0, '127.0.0.1')
  await once(server, 'listening')
  browser = await chromium.launch(chromiumOptions())
  page = await browser.newPage()
  await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/about/jobs`)
  await page.waitForFunction(() => 'double' in window)
})

afterAll(async () => {
  await browser.close()
  server.closeAllConnections()
  server.close()
})

async function namesOf(entry: string): Promise<readonly string[]> {
  return Object.keys((await import(entry)) as object)
}

describe('the bundler-free build', () => {
  it('has every name of the umbrella, its plugins and its driver', async () => {
    const names = await page.evaluate(() => window.names)
    const entries = ['@coji/durably', '@coji/durably/plugins', '@coji/durably/sqlocal']
    const wanted = (await Promise.all(entries.map(namesOf))).flat()
    expect([...names].sort()).toEqual([...new Set(wanted)].sort())
  })

  it.each(['jobs.sqlite3', ':memory:'])('runs a job on %s, from any folder of a host', async (databasePath) => {
    expect(await page.evaluate((path) => window.double(path, 21), databasePath)).toBe(42)
  })

  it('asks for no more than its own files', () => {
    const files = ['durably.js', 'sqlite3-opfs-async-proxy.js', 'sqlite3.js', 'sqlite3.wasm', 'worker.js']
    expect([...new Set(asked)].sort()).toEqual(files.map((file) => FOLDER + file))
  })
})
