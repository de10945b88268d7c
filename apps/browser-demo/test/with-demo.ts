import { type Browser, type BrowserContext, chromium, type Page } from 'playwright'
import { expect, inject } from 'vitest'
import { chromiumOptions } from '../../../test/chromium'
import { afterEachFile } from '../../../test/leftovers'
import { PATIENCE_MS } from '../../../test/pace'
import { openTab } from './demo-page'
import type { ContextOptions } from './profile'
import { createWitness, type Witness } from './witness'

export interface OpenDemo {
  readonly page: Page
  readonly context: BrowserContext
  readonly witness: Witness
}

/** One for all tests of a file. */
let browser: Promise<Browser> | null = null

afterEachFile(async () => {
  const used = browser
  browser = null
  await (await used)?.close()
})

/** Runs `use` with the built demo in storage of its own, and demands that the console stays empty. */
export async function withDemo(use: (demo: OpenDemo) => Promise<void>, options: ContextOptions = {}): Promise<void> {
  browser ??= chromium.launch(chromiumOptions())
  const context = await (await browser).newContext(options)
  context.setDefaultTimeout(PATIENCE_MS)
  try {
    const witness = createWitness()
    await witness.watch(context)
    const { page, complaints } = await openTab(context, inject('demoUrl'))
    await use({ page, context, witness })
    expect(complaints).toEqual([])
  } finally {
    await context.close()
  }
}
