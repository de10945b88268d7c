import { setTimeout } from 'node:timers/promises'
import { expect } from 'vitest'
import { type DemoTab, type FinishedRun, finishedRun, importSample } from './demo-page'
import { judge, type Verdict } from './judge'
import { checkSampleImport } from './sample'
import type { BodyStart } from './witness'

export interface InterruptParams {
  /** Opens the demo in a browser that `seen` comes from. */
  readonly open: () => Promise<DemoTab>
  /** Takes away what the tab lives in. */
  readonly end: (tab: DemoTab) => Promise<void>
  readonly delayMs: number
  readonly seen: readonly BodyStart[]
}

export interface InterruptedImport {
  readonly run: FinishedRun
  readonly verdict: Verdict
  readonly complaints: readonly string[]
  close(): Promise<void>
}

/** How long an import takes that nobody disturbs, in ms. Closes its tab. */
export async function timedImport({ page, complaints }: DemoTab): Promise<number> {
  const id = await importSample(page)
  const startedAt = performance.now()
  const run = await finishedRun(page, id)
  const durationMs = performance.now() - startedAt
  expect(checkSampleImport(run)).toEqual([])
  expect(complaints).toEqual([])
  await page.close()
  return durationMs
}

/** An import whose tab is gone so many milliseconds after the run exists, and that another tab brings to its end. */
export async function interruptImport({ open, end, delayMs, seen }: InterruptParams): Promise<InterruptedImport> {
  const first = await open()
  const id = await importSample(first.page)
  // Not a wait for something: the moment is what the test is about.
  await setTimeout(delayMs)
  await end(first)
  const second = await open()
  const run = await finishedRun(second.page, id)
  const tabs = [first, second]
  const starts = seen
    .map(({ page, part }) => ({ session: tabs.findIndex((tab) => tab.page === page), part }))
    .filter(({ session }) => session >= 0)
  return {
    run,
    verdict: judge({ sessions: tabs.map(({ openedAt }) => openedAt), steps: run.steps, starts }),
    complaints: [...first.complaints, ...second.complaints],
    close: () => second.page.close(),
  }
}
