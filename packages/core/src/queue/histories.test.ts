import { describe, expect, it } from 'vitest'
import { reportSuite } from '../../../../test/report'
import { LONG_PATIENCE_MS } from '../../../../test/pace'
import { scaled } from '../../../../test/scale'
import { BROKEN_RULES } from '../testing/task-histories/broken-rules'
import { exploreHistories, findBrokenRule } from '../testing/task-histories/explore-histories'
import { playHistory } from '../testing/task-histories/play-history'

const HISTORIES = scaled({ quick: 150, full: 10_000 })

/** So many at most until a broken rule shows. */
const RULE_SEEDS = 400

/** Of those that take long to show: a seed that showed each once, played before all others. */
const SEEDS_THAT_SHOW: Readonly<Record<string, number>> = {
  'crashes have no limit': 28,
  'a redrive keeps the attempts': 97,
  'a redrive of all is one of the newest': 119,
  'a budget is ignored': 308,
}

/** What histories must be about, or they would prove little. */
const COMMON = ['new', 'started', 'succeeded', 'failed', 'retry_scheduled', 'dead', 'redriven', 'released', 'recovered']
const AFTER_DEATH = ['unheard claim', 'unheard complete', 'unheard retryLater']

describe('histories of tasks', () => {
  it('are the same for the same seed', async () => {
    const tell = async (seed: number) => {
      const lines: string[] = []
      await playHistory({ seed, trace: (line) => void lines.push(line) })
      return lines
    }
    const told: string[][] = []
    // From one place: the stacks of errors, which are part of what is told, may go back to here.
    for (const seed of [3, 3, 4]) told.push(await tell(seed))
    expect(told[0]).toEqual(told[1])
    expect(told[0]).not.toEqual(told[2])
  })

  it('break no rule of the queue', { timeout: LONG_PATIENCE_MS }, async () => {
    const startedAt = performance.now()
    const { failures, heard } = await exploreHistories(HISTORIES)
    const seconds = Math.round((performance.now() - startedAt) / 100) / 10
    expect(failures).toEqual([])
    const timesOf = (name: string) => heard.get(name) ?? 0
    for (const name of COMMON) expect(timesOf(name), name).toBeGreaterThan(HISTORIES / 20)
    for (const name of AFTER_DEATH) expect(timesOf(name), name).toBeGreaterThan(0)
    const [executions, crashes] = [timesOf('started'), timesOf('recovered')]
    reportSuite({ suite: 'task histories', histories: HISTORIES, seconds, executions, crashes })
  })
})

describe('histories of tasks show', () => {
  it.each(Object.entries(BROKEN_RULES))('when %s', async (name, rule) => {
    expect(await findBrokenRule(rule, RULE_SEEDS, SEEDS_THAT_SHOW[name])).not.toBeNull()
  })
})
