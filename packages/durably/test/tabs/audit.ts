import type { Page } from 'playwright'
import type { Tab } from './page/main'

/** Calls something of a tab. */
export function inTab<T, A>(page: Page, fn: (tab: Tab, given: A) => T | Promise<T>, given?: A): Promise<T> {
  // The function goes to the page as its text.
  return page.evaluate(`(async (given) => (${fn.toString()})(window.tab, given))(${JSON.stringify(given)})`)
}

/** Waits until something is so in a tab. */
export async function untilInTab(page: Page, fn: (tab: Tab) => boolean): Promise<void> {
  await page.waitForFunction(`(${fn.toString()})(window.tab)`, undefined, { polling: 50 })
}

/** How many runs have come to an end, good or bad. */
export function countEnded(page: Page): Promise<number> {
  return inTab(page, async ({ durably }) => (await durably.getRuns({ status: ['completed', 'failed'] })).length)
}

/** What became of every run, by the database and by the witness. */
export interface Audit {
  readonly statuses: Readonly<Record<string, number>>
  readonly recordedSteps: number
  /** Bodies begun, counting each again. */
  readonly bodies: number
  /** Steps that a tab recorded and that were begun more than that once, or never. */
  readonly repeated: readonly string[]
  /** How many steps each tab recorded. */
  readonly recordedBy: Readonly<Record<string, number>>
  /** Every row of runs and steps. */
  readonly rows: string
}

/** `recordedIn`: only what this tab recorded is looked at for repetitions. */
export async function audit(page: Page, recordedIn?: string): Promise<Audit> {
  const { runs, steps, witness } = await inTab(page, async (tab) => ({
    runs: await tab.durably.db.selectFrom('durably_runs').selectAll().orderBy('id').execute(),
    steps: await tab.durably.db.selectFrom('durably_steps').selectAll().orderBy('id').execute(),
    witness: tab.readWitness(),
  }))
  const begun = countEach(witness)
  const recorded = steps.map((step) => ({
    body: `${step.run_id}/${step.name}`,
    tab: String(JSON.parse(step.output ?? 'null')),
  }))
  const repeated = recorded
    .filter(({ body, tab }) => (recordedIn === undefined || tab === recordedIn) && begun[body] !== 1)
    .map(({ body }) => `${body}: ${begun[body] ?? 0} times`)
  return {
    statuses: countEach(runs.map((run) => run.status)),
    recordedSteps: steps.length,
    bodies: witness.length,
    repeated,
    recordedBy: countEach(recorded.map(({ tab }) => tab)),
    rows: JSON.stringify({ runs, steps }),
  }
}

function countEach(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1
  return counts
}
