import { describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { type Clock, type SqlDurably, systemClock } from '../../src/index'
import { newFile, openMigrated } from '../instances'
import { type DriverCall, type DriverLog, LOGGED_DIALECTS, transactionsOf } from './driver-log'
import { countLoggedCommits } from './wal'

/** Without what a worker does every second, which is not the cost of a run. */
const clock: Clock = {
  ...systemClock,
  schedule: (ms, fn) => (ms < 1000 ? systemClock.schedule(ms, fn) : () => {}),
}

function open(log: DriverLog): Promise<SqlDurably> {
  return openMigrated(log.dialect, { environment: { clock }, pollingInterval: 60_000 })
}

/** What each statement of durably is for. */
const STATEMENTS: readonly (readonly [RegExp, string])[] = [
  [/^insert into "durably_runs"/, 'enqueue'],
  [/^update "durably_runs" as r set status = 'running'/, 'claim'],
  [/^insert into "durably_steps"/, 'record step'],
  [/^update "durably_runs" as parent/, 'wake parent'],
  [/^update "durably_runs" as r set "version"/, 'update run'],
  [/^select .* from "durably_steps"/s, 'read steps'],
]

function purposeOf(statement: string): string {
  return STATEMENTS.find(([pattern]) => pattern.test(statement))?.[1] ?? statement
}

/** Before a run the worker may still be looking for one after the run before, and after it for the next. */
function withoutLooks(calls: readonly DriverCall[]): readonly DriverCall[] {
  const isFor = (purpose: string) => (call: DriverCall) => purposeOf(call[0] ?? '') === purpose
  const own = calls.slice(calls.findIndex(isFor('enqueue')))
  const claim = own.findIndex(isFor('claim'))
  const isLook = (call: DriverCall) => call[0]?.startsWith('with recursive keys') === true
  return own.filter((call, index) => !isLook(call) && (index <= claim || !isFor('claim')(call)))
}

const DIALECTS = [
  { name: 'betterSqlite3()', callsPerCommit: 4 },
  { name: 'libsql()', callsPerCommit: 1 },
  { name: 'a bare dialect', callsPerCommit: 4 },
] as const

describe.each(DIALECTS)('what a run costs on $name', ({ name, callsPerCommit }) => {
  it.each([0, 1, 5, 20])('is N + 3 commits and no read for %i steps', async (steps) => {
    const file = newFile()
    const log = LOGGED_DIALECTS[name](file)
    const durably = await open(log)
    const job = durably.defineJob({ name: 'steps', input: z.object({ steps: z.number() }) }, async (ctx, input) => {
      for (let n = 0; n < input.steps; n++) await ctx.run(`step-${n}`, () => ({ n }))
    })
    durably.start()
    await job.triggerAndWait({ steps: 1 })
    const before = countLoggedCommits(file)
    log.take()

    const completed = new Promise<unknown>((resolve) => durably.on('run:complete', resolve))
    await job.trigger({ steps })
    await completed
    await durably.stop()

    const calls = withoutLooks(log.take())
    expect(transactionsOf(calls).map((statements) => statements.map(purposeOf))).toEqual([
      ['enqueue'],
      ['claim'],
      ...Array.from({ length: steps }, () => ['record step', 'update run']),
      ['wake parent', 'update run'],
    ])
    expect(calls.length).toBe(2 + callsPerCommit * (steps + 1))
    expect(countLoggedCommits(file) - before).toBe(steps + 3)
  })

  it('is one read of steps when a run with 5,000 of them goes on', async () => {
    const file = newFile()
    const names = Array.from({ length: 5000 }, (_, n) => `step-${n}`)
    const first = await open(LOGGED_DIALECTS[name](file))
    const reached = new Promise<void>((resolve) => {
      const job = first.defineJob({ name: 'long', input: z.object({}) }, async (ctx) => {
        await Promise.all(names.map((step) => ctx.run(step, () => step)))
        await ctx.run('last', () => {
          resolve()
          return new Promise<never>(() => {})
        })
      })
      first.start()
      void job.trigger({})
    })
    await reached
    await first.close()

    const log = LOGGED_DIALECTS[name](file)
    const second = await open(log)
    const body = vi.fn(() => 'again')
    const job = second.defineJob({ name: 'long', input: z.object({}) }, async (ctx) => {
      const read: string[] = []
      for (const step of names) read.push(await ctx.run(step, body))
      await ctx.run('last', () => {})
      return read
    })
    log.take()
    const completed = new Promise<{ readonly output: unknown }>((resolve) => second.on('run:complete', resolve))
    await second.runUntilIdle()
    expect((await completed).output).toEqual(names)
    expect(body).not.toHaveBeenCalled()
    const purposes = log.take().flat().map(purposeOf)
    expect(purposes.filter((purpose) => purpose === 'read steps')).toHaveLength(1)
    expect(purposes.filter((purpose) => purpose === 'record step')).toHaveLength(1)
    expect(await job.getRuns({ status: 'completed' })).toHaveLength(1)
  })
})
