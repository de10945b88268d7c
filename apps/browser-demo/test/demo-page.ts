import type { Durably } from '@coji/durably'
import type { BrowserContext, Page } from 'playwright'
import { expect } from 'vitest'
import type { JudgedStep } from './judge'
import { ROWS, sampleCsv } from './sample'

/** A tab with the demo in it, and what the browser complained about. */
export interface DemoTab {
  readonly page: Page
  readonly openedAt: number
  readonly complaints: readonly string[]
}

export interface FinishedRun {
  readonly status: string
  readonly payload: unknown
  readonly output: unknown
  readonly error: string | null
  readonly steps: readonly JudgedStep[]
  /** The orders in the files that the steps of an import wrote. */
  readonly written: readonly string[]
}

/** Opens the demo and waits until it can be used. */
export async function openTab(context: BrowserContext, url: string): Promise<DemoTab> {
  const openedAt = Date.now()
  const page = await context.newPage()
  const complaints = complaintsOf(page)
  await page.goto(url)
  await page.getByRole('button', { name: 'Import sample' }).waitFor()
  return { page, openedAt, complaints }
}

/** Collects errors and warnings of the console, uncaught errors and failed requests. */
export function complaintsOf(page: Page): readonly string[] {
  const complaints: string[] = []
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(`${message.type()}: ${message.text()}`)
  })
  page.on('pageerror', (error) => complaints.push(`uncaught: ${error.message}`))
  page.on('response', (response) => {
    if (response.status() >= 400) complaints.push(`${response.status()}: ${response.url()}`)
  })
  return complaints
}

/** Imports a sample of so many rows and answers the id of the run, as soon as there is one. */
export async function importSample(page: Page, rows = ROWS): Promise<string> {
  const before = await runIds(page)
  await page.getByLabel('Sample size').selectOption(String(rows))
  await page.getByRole('button', { name: 'Import sample' }).click()
  return newRun(page, before)
}

/** Chooses a file with so many orders of the sample, which the buttons do not offer. */
export async function importRows(page: Page, rows: number): Promise<string> {
  const before = await runIds(page)
  const file = { name: 'orders.csv', mimeType: 'text/csv', buffer: await sampleCsv(rows) }
  await page.getByLabel('Drop a CSV of orders').setInputFiles(file)
  return newRun(page, before)
}

/** The id of the run that was not there before. */
export async function newRun(page: Page, before: readonly string[]): Promise<string> {
  let found: string | undefined
  const look = async () => {
    found = (await runIds(page)).find((id) => !before.includes(id))
    return found
  }
  await expect.poll(look, { interval: 20 }).toBeDefined()
  return found ?? ''
}

export function runIds(page: Page): Promise<string[]> {
  return page.evaluate(async () => {
    const durably: Durably = Reflect.get(window, 'durably')
    return (await durably.getRuns({ limit: 100 })).map(({ id }) => id)
  })
}

export function statusOf(page: Page, id: string): Promise<string | null> {
  return page.evaluate(async (runId) => {
    const durably: Durably = Reflect.get(window, 'durably')
    return (await durably.getRun(runId))?.status ?? null
  }, id)
}

/** Waits until so many steps of a run are recorded, and answers the names of all that are. */
export async function recordedSteps(page: Page, id: string, atLeast: number): Promise<string[]> {
  let names: string[] = []
  const look = async () => {
    names = await page.evaluate(async (runId) => {
      const durably: Durably = Reflect.get(window, 'durably')
      return (await durably.getSteps(runId)).map(({ name }) => name)
    }, id)
    return names.length
  }
  await expect.poll(look, { interval: 20 }).toBeGreaterThanOrEqual(atLeast)
  return names
}

/** Waits for the end of a run, whichever it is, and reads everything. */
export async function finishedRun(page: Page, id: string): Promise<FinishedRun> {
  const ends = expect.stringMatching(/^(completed|failed|timed_out|cancelled)$/)
  await expect.poll(() => statusOf(page, id), { interval: 100 }).toEqual(ends)
  const written = await writtenOrders(page, id)
  const rest = await page.evaluate(async (runId) => {
    const durably: Durably = Reflect.get(window, 'durably')
    const run = await durably.getRun(runId)
    if (run === null) throw new Error(`There is no run ${runId}.`)
    const records = await durably.storage.getSteps(runId, {})
    const steps = records.map(({ name, index, status, leaseEpoch, startedAt }) => {
      return { name, index, status, leaseEpoch, startedAt }
    })
    return { status: run.status, payload: run.payload, output: run.output, error: run.error, steps }
  }, id)
  return { ...rest, written }
}

/** Reads past the app, from where it keeps its files; nothing for a run that wrote none there. */
function writtenOrders(page: Page, id: string): Promise<string[]> {
  return page.evaluate(async (runId) => {
    const durably: Durably = Reflect.get(window, 'durably')
    const payload = (await durably.getRun(runId))?.payload
    const into = payload instanceof Object && 'into' in payload ? String(payload.into) : ''
    const orders: string[] = []
    try {
      let folder = await navigator.storage.getDirectory()
      for (const name of ['durably-demo-files', ...into.split('/')]) folder = await folder.getDirectoryHandle(name)
      for await (const handle of folder.values()) {
        // Chromium also lists the swap file (.crswap) of a write that was killed before its end.
        if (!(handle instanceof FileSystemFileHandle) || !handle.name.endsWith('.jsonl')) continue
        const lines = (await (await handle.getFile()).text()).split('\n')
        if (lines.pop() !== '') throw new Error(`${handle.name} ends within a line.`)
        for (const line of lines) {
          const order = /^\{"order":"([^"]+)".*\}$/.exec(line)?.[1]
          if (order === undefined) throw new Error(`${handle.name} has the line ${line}`)
          orders.push(order)
        }
      }
    } catch (error) {
      if (!(error instanceof DOMException && error.name === 'NotFoundError')) throw error
    }
    return orders
  }, id)
}
