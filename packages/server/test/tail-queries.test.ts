import { createKyselyStorage } from '@coji/durably-storage-kysely'
import { betterSqlite3 } from '@coji/durably-storage-kysely/better-sqlite3'
import Database from 'better-sqlite3'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { openApi } from './api'
import { type Follower, followRun } from './sse'

const [FEW, MANY] = [10, 200]
const TICKS = 20
/** Longer than the longest pause between two looks. */
const TICK_MS = 1000

beforeEach(() => {
  vi.useFakeTimers()
  // So that the pauses are the same each time.
  vi.spyOn(Math, 'random').mockReturnValue(0.5)
})
afterEach(() => {
  vi.useRealTimers()
})

function openCounted() {
  const sent = { statements: 0 }
  const count = () => {
    sent.statements += 1
  }
  const database = new Database(':memory:', { verbose: count })
  const api = openApi({ storage: createKyselyStorage({ dialect: betterSqlite3({ database }) }) })
  return { ...api, sent }
}

interface Crowd {
  readonly followers: number
  readonly runs: number
}

/** How many statements are sent while nothing happens, and while something happens to each run, in so many ticks. */
async function statementsFor({ followers, runs }: Crowd) {
  const { durably, handler, sent } = openCounted()
  await durably.migrate()
  const ids: string[] = []
  for (let n = 0; n < runs; n++) ids.push((await durably.trigger('waits', n)).id)
  const crowd: Follower[] = []
  for (let n = 0; n < followers; n++) crowd.push(await followRun(handler, ids[n % runs] ?? ''))
  const ends = crowd.map((follower) => follower.toEnd())
  const tick = () => vi.advanceTimersByTimeAsync(TICK_MS)
  const seenByAll = () => Math.min(...crowd.map(({ messages }) => messages.length))
  await tick()
  expect(seenByAll()).toBe(1)
  async function during(act: () => Promise<unknown>): Promise<number> {
    sent.statements = 0
    for (let n = 0; n < TICKS; n++) {
      await act()
      await tick()
    }
    return sent.statements
  }
  const quiet = await during(async () => {})
  const busy = await during(() => durably.signal(ids[0] ?? '', 'go', 1))
  const seen = crowd.filter((_, index) => index % runs === 0).map(({ messages }) => messages.length)
  expect(new Set(seen)).toEqual(new Set([1 + TICKS]))
  for (const follower of crowd) await follower.leave()
  await Promise.all(ends)
  return { quiet, busy }
}

it(`sends as many statements for ${MANY} followers as for ${FEW}, of few runs and of many`, async () => {
  const few = await statementsFor({ followers: FEW, runs: 5 })
  // There is something to compare.
  expect(few.quiet).toBeGreaterThanOrEqual(TICKS / 2)
  expect(few.busy).toBeGreaterThan(few.quiet)
  for (const runs of [5, MANY]) {
    const many = await statementsFor({ followers: MANY, runs })
    expect(many.quiet / few.quiet, `quiet, of ${runs} runs`).toBeLessThan(1.2)
    expect(many.busy / few.busy, `busy, of ${runs} runs`).toBeLessThan(1.2)
  }
})
