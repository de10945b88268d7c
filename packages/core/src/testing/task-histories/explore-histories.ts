import { playHistory } from './play-history'
import type { BrokenRule } from './task-mutant'

/** What many histories came to. */
export interface ExploredHistories {
  /** Seed, violation and story of each that broke a rule; the first three. */
  readonly failures: readonly string[]
  /** How often each event was heard. */
  readonly heard: ReadonlyMap<string, number>
}

const MOST_FAILURES = 3
const STORY_LINES = 150

export async function exploreHistories(histories: number): Promise<ExploredHistories> {
  const failures: string[] = []
  const heard = new Map<string, number>()
  for (let seed = 1; seed <= histories && failures.length < MOST_FAILURES; seed++) {
    const report = await playHistory({ seed })
    for (const [name, times] of report.heard) heard.set(name, (heard.get(name) ?? 0) + times)
    if (report.violation !== null) failures.push(await retell(seed, report.violation))
  }
  return { failures, heard }
}

/** A seed replays exactly, so that its story need not be kept while nothing is wrong. */
async function retell(seed: number, violation: string): Promise<string> {
  const lines: string[] = []
  await playHistory({ seed, trace: (line) => void lines.push(line) })
  const headline = `seed ${seed}: ${violation}`
  return [headline, ...lines.slice(-STORY_LINES), headline].join('\n')
}

/** A seed whose history shows that the rule is broken, `first` and then one after the other; `null` when none does. */
export async function findBrokenRule(
  { shows, ...mutant }: BrokenRule,
  limit: number,
  first = 1,
): Promise<number | null> {
  for (let played = 0; played < limit; played++) {
    const seed = played === 0 ? first : played
    const { violation } = await playHistory({ ...mutant, seed })
    if (violation !== null && shows.test(violation)) return seed
  }
  return null
}
