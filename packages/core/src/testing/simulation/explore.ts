import { type Coverage, noteAll } from './faults'
import { simulate, type SimulateOptions } from './simulate'

/** A seed that broke a rule. */
export interface Failure {
  readonly seed: number
  readonly violation: string
  /** The end of the story, as it happened. */
  readonly story: readonly string[]
}

/** What many seeds came to. */
export interface Exploration {
  readonly seeds: number
  readonly operations: number
  /** The smallest number of operations a seed had. */
  readonly leastOperations: number
  readonly bodyStarts: number
  readonly zombieStarts: number
  readonly coverage: Coverage
  readonly failures: readonly Failure[]
}

/** Which seeds to play, and on what. */
export interface ExploreOptions extends Omit<SimulateOptions, 'seed' | 'trace'> {
  readonly firstSeed: number
  /** Asked before each seed, with the number played so far and what they have met. */
  readonly goesOn: (played: number, coverage: Coverage) => boolean
}

const MOST_FAILURES = 3
const STORY_LINES = 250

/** Plays one seed after another and adds up. Stops early after three failures. */
export async function explore({ firstSeed, goesOn, ...options }: ExploreOptions): Promise<Exploration> {
  const coverage: Coverage = new Map()
  const failures: Failure[] = []
  let [seeds, operations, bodyStarts, zombieStarts] = [0, 0, 0, 0]
  let leastOperations = Number.POSITIVE_INFINITY
  while (failures.length < MOST_FAILURES && goesOn(seeds, coverage)) {
    const report = await simulate({ ...options, seed: firstSeed + seeds })
    seeds += 1
    operations += report.operations
    bodyStarts += report.bodyStarts
    zombieStarts += report.zombieStarts
    noteAll(coverage, report.coverage)
    if (report.violation === null) leastOperations = Math.min(leastOperations, report.operations)
    else failures.push({ seed: report.seed, violation: report.violation, story: await retell(options, report.seed) })
  }
  return { seeds, operations, leastOperations, bodyStarts, zombieStarts, coverage, failures }
}

/** A seed replays exactly, so that its story need not be kept while nothing is wrong. */
async function retell(options: Omit<SimulateOptions, 'seed'>, seed: number): Promise<readonly string[]> {
  const lines: string[] = []
  await simulate({ ...options, seed, trace: (line) => void lines.push(line) })
  return lines.slice(-STORY_LINES)
}

/** How many seeds it takes until a violation shows up; `null` when that many do not. `first` is played before seed 1. */
export async function seedsUntilFound(
  options: Omit<SimulateOptions, 'seed' | 'trace'>,
  limit: number,
  first = 1,
): Promise<{ readonly seeds: number; readonly violation: string; readonly seed: number } | null> {
  for (let seeds = 1; seeds <= limit; seeds++) {
    const seed = seeds === 1 ? first : seeds - 1
    const { violation } = await simulate({ ...options, seed })
    if (violation !== null) return { seeds, violation, seed }
  }
  return null
}

/** A violation with its seed and story, for people. */
export function describeFailure({ seed, violation, story }: Failure): string {
  return [`seed ${seed}: ${violation}`, ...story, `seed ${seed}: ${violation}`].join('\n')
}
