import type { BrowserContext, Page } from 'playwright'
import { expect, inject } from 'vitest'
import { openTab } from './demo-page'
import { type ContextOptions, withBrowser } from './profile'
import { createWitness, type Witness } from './witness'

export interface OpenDemo {
  readonly page: Page
  readonly context: BrowserContext
  readonly witness: Witness
}

/** Runs `use` with the built demo in a browser of its own, and demands that the console stays empty. */
export function withDemo(use: (demo: OpenDemo) => Promise<void>, options: ContextOptions = {}): Promise<void> {
  return withBrowser(async (context) => {
    const witness = createWitness()
    await witness.watch(context)
    const { page, complaints } = await openTab(context, inject('demoUrl'))
    await use({ page, context, witness })
    expect(complaints).toEqual([])
  }, options)
}
