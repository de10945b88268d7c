import { setTimeout } from 'node:timers/promises'
import { expect } from 'vitest'
import { type DemoTab, type FinishedRun, finishedRun, importSample } from './demo-page'
import { judge, type Verdict } from './judge'
import type { Moment } from './moments'
import { checkSampleImport, PARTS } from './sample'
import type { Witness } from './witness'

export interface InterruptParams {
  /** Opens the demo in a browser that the witness watches. */
  readonly open: () => Promise<DemoTab>
  /** Takes away what the tab lives in. */
  readonly end: (tab: DemoTab) => Promise<void>
  readonly moment: Moment
  /** How long an import takes that nobody disturbs. */
  readonly durationMs: number
  readonly witness: Witness
}

export interface InterruptedImport {
  readonly moment: Moment
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

/** An import whose tab is gone at a moment after the run exists, and that another tab brings to its end. */
export async function interruptImport(params: InterruptParams): Promise<InterruptedImport> {
  const { open, end, moment, witness } = params
  const first = await open()
  // However late the end comes, there is a part left that this tab did not write.
  if (moment.kind === 'part') witness.hold({ page: first.page, part: PARTS })
  const id = await importSample(first.page)
  await reach(first, params)
  await end(first)
  const second = await open()
  const run = await finishedRun(second.page, id)
  const tabs = [first, second]
  const starts = witness.seen
    .map(({ page, part }) => ({ session: tabs.findIndex((tab) => tab.page === page), part }))
    .filter(({ session }) => session >= 0)
  return {
    moment,
    run,
    verdict: judge({ sessions: tabs.map(({ openedAt }) => openedAt), steps: run.steps, starts }),
    complaints: [...first.complaints, ...second.complaints],
    close: () => second.page.close(),
  }
}

async function reach({ page }: DemoTab, { moment, durationMs, witness }: InterruptParams): Promise<void> {
  if (moment.kind === 'part') await witness.began({ page, part: moment.part })
  // Not a wait for something: the moment is what the test is about.
  await setTimeout(moment.share * (moment.kind === 'part' ? durationMs / PARTS : durationMs))
}
