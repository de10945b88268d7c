import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { casesFor } from '@coji/durably-core/testing'
import sqlocal from 'sqlocal/vite'
import { build, preview, type PreviewServer } from 'vite'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { reportSuite } from '../../../../test/report'
import { scaled } from '../../../../test/scale'
import { describeWithFirefox, launchFirefox, type FirefoxProcess } from './firefox-process'
import type { FirefoxTab } from './marionette'
import { itInFullLane } from '../../../../test/full-lane'

const ISOLATED = { 'Cross-Origin-Opener-Policy': 'same-origin', 'Cross-Origin-Embedder-Policy': 'require-corp' }

/** As many as share the processor well. */
const CASES_AT_ONCE = 12
const CASES_IN_A_PART = 48

const cases = casesFor([
  'events',
  'logs',
  'signals',
  'transaction',
  'watch',
  'limits',
  'archiving',
  'audit',
  'settings',
  'cluster',
]).cases.map(({ name }) => name)

/** A test for some of them, so that each has its time; in the quick lane there are few. */
function partsOf(names: readonly string[]) {
  const wanted = names.filter((_, index) => index % scaled({ quick: 200, full: 1 }) === 0)
  const parts: [string, readonly string[]][] = []
  for (let first = 0; first < wanted.length; first += CASES_IN_A_PART) {
    parts.push([`from case ${first + 1} on`, wanted.slice(first, first + CASES_IN_A_PART)])
  }
  return parts
}

let folder = ''
let server: PreviewServer
let firefox: FirefoxProcess
let tabs: FirefoxTab[] = []

async function serve(outDir: string): Promise<PreviewServer> {
  const shared = { configFile: false, root: join(import.meta.dirname, 'page'), logLevel: 'error' } as const
  await build({
    ...shared,
    plugins: [sqlocal()],
    resolve: { conditions: ['@coji/durably-source', 'module', 'browser', 'development|production'] },
    build: { outDir, target: 'es2022' },
  })
  return preview({ ...shared, build: { outDir }, preview: { host: '127.0.0.1', port: 0, headers: ISOLATED } })
}

async function newTab(file?: string): Promise<FirefoxTab> {
  const tab = await firefox.driver.open(server.resolvedUrls?.local[0] ?? '')
  tabs.push(tab)
  await ready(tab, file)
  return tab
}

async function ready(tab: FirefoxTab, file?: string): Promise<void> {
  await expect.poll(() => tab.evaluate(() => 'inFirefox' in window)).toBe(true)
  if (file !== undefined) await tab.evaluate((name) => window.inFirefox.open(name), file)
}

function startFirefox(): Promise<FirefoxProcess> {
  return launchFirefox(join(folder, 'profile'))
}

const witness = (tab: FirefoxTab) => tab.evaluate(() => window.inFirefox.witness())
const runsIn = (tab: FirefoxTab) => tab.evaluate(() => window.inFirefox.runs())

async function untilCompleted(tab: FirefoxTab, count: number): Promise<void> {
  await expect
    .poll(async () => (await runsIn(tab)).map(({ status }) => status))
    .toEqual(Array.from({ length: count }, () => 'completed'))
}

describeWithFirefox('durably in Firefox', () => {
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'durably-firefox-'))
    server = await serve(join(folder, 'site'))
    firefox = await startFirefox()
  })

  // What a test leaves open must not take turns with the next one. Some have closed already, or went with their browser.
  afterEach(async () => {
    await Promise.allSettled(tabs.map((tab) => tab.close()))
    tabs = []
  })

  afterAll(async () => {
    await firefox.kill()
    await server.close()
    rmSync(folder, { recursive: true, force: true })
  })

  it('opens its file at each load of the page, and runs a job', async () => {
    const loads = scaled({ quick: 2, full: 65 })
    const tab = await newTab()
    let slowestMs = 0
    for (let load = 0; load < loads; load++) {
      if (load > 0) await tab.goto(server.resolvedUrls?.local[0] ?? '')
      const started = performance.now()
      await ready(tab, 'loads.sqlite3')
      expect(await tab.evaluate(() => window.inFirefox.run({ steps: 1, ms: 0 }))).toBe(1)
      slowestMs = Math.max(slowestMs, performance.now() - started)
    }
    expect(await witness(tab)).toHaveLength(loads)
    reportSuite({ suite: 'loads of a page in Firefox', loads, slowestMs: Math.round(slowestMs) })
  })

  it('counts no crash of pages that somebody leaves in the middle of a step', async () => {
    const navigations = scaled({ quick: 2, full: 30 })
    const file = 'reloads.sqlite3'
    const tab = await newTab(file)
    await tab.evaluate(() => window.inFirefox.trigger({ steps: 1, ms: 3_600_000 }))
    for (let n = 1; n <= navigations; n++) {
      await expect.poll(async () => (await witness(tab)).length).toBe(n)
      await tab.goto(server.resolvedUrls?.local[0] ?? '')
      await ready(tab, file)
    }
    await expect.poll(async () => (await witness(tab)).length).toBe(navigations + 1)
    expect(await runsIn(tab)).toMatchObject([{ status: 'running', crashCount: 0 }])
  })

  itInFullLane('runs everything once in one of two tabs, and goes on in the other when that one closes', async () => {
    const file = 'tabs.sqlite3'
    const leader = await newTab(file)
    const follower = await newTab(file)
    for (const tab of [leader, follower, leader, follower]) {
      await tab.evaluate(() => window.inFirefox.trigger({ steps: 2, ms: 0 }))
    }
    await untilCompleted(follower, 4)
    expect(await witness(follower)).toHaveLength(8)
    const name = await leader.evaluate(() => window.inFirefox.tab)
    const recordedBy = async ({ id }: { id: string }) =>
      follower.evaluate((run) => window.inFirefox.recordedBy(run), id)
    const recorders = (await Promise.all((await runsIn(follower)).map(recordedBy))).flat()
    expect(new Set(recorders)).toEqual(new Set([name]))

    await follower.evaluate(() => window.inFirefox.trigger({ steps: 40, ms: 50 }))
    await expect.poll(async () => (await witness(follower)).length).toBeGreaterThan(10)
    await leader.close()
    await untilCompleted(follower, 5)
    // The step that was begun in the tab that is gone, and nothing else.
    expect((await witness(follower)).length).toBeLessThanOrEqual(8 + 40 + 1)
    expect(await follower.evaluate(() => window.inFirefox.worker())).toBe('running')
  })

  itInFullLane('goes on after the last recorded step when the browser was killed', async () => {
    const file = 'killed.sqlite3'
    const before = await newTab(file)
    const id = await before.evaluate(() => window.inFirefox.trigger({ steps: 20, ms: 100 }))
    const name = await before.evaluate(() => window.inFirefox.tab)
    await expect
      .poll(() => before.evaluate((run) => window.inFirefox.recordedBy(run).then((by) => by.length), id))
      .toBeGreaterThan(4)
    await firefox.kill()

    firefox = await startFirefox()
    const after = await newTab(file)
    await untilCompleted(after, 1)
    const recordedBy = await after.evaluate((run) => window.inFirefox.recordedBy(run), id)
    expect(recordedBy).toHaveLength(20)
    const ofTheFirst = recordedBy.filter((tab) => tab === name).length
    expect(ofTheFirst).toBeGreaterThan(4)
    expect(recordedBy.slice(0, ofTheFirst)).toEqual(recordedBy.filter((tab) => tab === name))
  })

  it.each(partsOf(cases))('keeps the storage contract %s', async (_, names) => {
    const tab = await newTab()
    const failures: string[] = []
    for (let first = 0; first < names.length; first += CASES_AT_ONCE) {
      const some = names.slice(first, first + CASES_AT_ONCE)
      failures.push(...(await tab.evaluate((list) => window.inFirefox.runCases(list), some)))
    }
    await tab.evaluate(() => window.inFirefox.endCases())
    expect(failures).toEqual([])
    reportSuite({ suite: 'the storage contract in Firefox', cases: names.length })
  })
})
