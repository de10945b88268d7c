import { createDurably, defineJob, type Durably, type JobOptions } from '@coji/durably-core'
import { createKyselyStorage } from '@coji/durably-storage-kysely'
import { betterSqlite3 } from '@coji/durably-storage-kysely/better-sqlite3'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { type ClusterOptions, createCluster, createInbox, createScheduler } from '../src/index'
import { HOUR, schemaOf } from './stage'

const RUNS = 20

/** The statements that runs of two steps are made of, one run after the other. */
async function statementsOf(
  prepare: (durably: Durably) => Promise<unknown>,
  over: Pick<JobOptions<'other', number, void>, 'placement'> = {},
): Promise<Record<string, number>> {
  const folder = mkdtempSync(join(tmpdir(), 'durably-cost-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const counts: Record<string, number> = {}
  const onStatement = (sql: unknown) => {
    const text = String(sql)
      .replaceAll(/'[^']*'/g, "''")
      .replaceAll(/\b\d+(\.\d+)?\b/g, '0')
    if (/durably_(runs|steps)/.test(text)) counts[text] = (counts[text] ?? 0) + 1
  }
  const storage = createKyselyStorage({
    dialect: betterSqlite3({ filename: join(folder, 'app.db'), options: { verbose: onStatement } }),
  })
  const durably = createDurably({
    storage,
    logger: null,
    pollingInterval: HOUR,
    heartbeatInterval: HOUR,
    staleThreshold: 4 * HOUR,
  })
  onTestFinished(() => durably.close())
  const job = defineJob({ name: 'job', input: schemaOf<number>() }, async (ctx, n) => {
    await ctx.run('a', () => n)
    await ctx.run('b', () => n)
  })
  const other = defineJob({ name: 'other', input: schemaOf<number>(), ...over }, () => {})
  const { job: handle } = durably.register({ job, other })
  await durably.migrate()
  const isReady = prepare(durably)
  durably.start()
  await isReady
  for (const text of Object.keys(counts)) delete counts[text]
  for (let n = 0; n < RUNS; n++) await handle.triggerAndWait(n)
  return counts
}

async function joinCluster(durably: Durably, options: ClusterOptions = {}): Promise<void> {
  createScheduler(durably, { pollingInterval: HOUR })
  createInbox(durably, { pollingInterval: HOUR })
  const cluster = createCluster(durably, { pollingInterval: HOUR, ...options })
  await expect.poll(() => cluster.status().isLeader).toBe(true)
}

/** Behind an ended run a worker may look once more, or has heard of the next one already; and it looks when it begins. */
function mostOf(alone = 0): number {
  return Math.max(alone, 2 * RUNS) + RUNS / 4
}

it('a leader adds no statement to a run that needs none, and makes none of them longer', async () => {
  const alone = await statementsOf(async () => {})
  const led = await statementsOf((durably) => joinCluster(durably))
  const ofRuns = Object.keys(alone).filter((text) => (alone[text] ?? 0) >= RUNS)
  expect(ofRuns.length).toBeGreaterThan(3)
  for (const text of ofRuns) {
    expect(led[text] ?? 0, text).toBeLessThanOrEqual(mostOf(alone[text]))
  }
  // What is sent by the clock, such as looks for work to place, is less than once a run.
  const more = Object.entries(led).filter(([text]) => !(text in alone))
  const count = more.reduce((sum, [, times]) => sum + times, 0)
  expect(count, JSON.stringify(more)).toBeLessThan(RUNS)
})

it('runs that are claimed do not have the leader look for what it may place, one by one', async () => {
  const placed = { placement: 'leader' } as const
  const alone = await statementsOf(async () => {}, placed)
  const led = await statementsOf(async (durably) => {
    await joinCluster(durably, { pollingInterval: HOUR })
    await expect.poll(async () => (await durably.storage.cluster?.placement.getWorkers())?.length).toBe(1)
  }, placed)
  const looks = Object.entries(led).filter(([text]) => !(text in alone))
  expect(looks.length).toBeGreaterThan(0)
  for (const [text, count] of looks) expect(count, text).toBeLessThan(RUNS / 2)
  const ofRuns = Object.keys(alone).filter((text) => (alone[text] ?? 0) >= RUNS)
  for (const text of ofRuns) expect(led[text] ?? 0, text).toBeLessThanOrEqual(mostOf(alone[text]))
})
