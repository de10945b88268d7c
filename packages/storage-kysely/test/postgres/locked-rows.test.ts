import type { Lead, RunRecord } from '@coji/durably-core/storage'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createDatabase, type PostgresDatabase } from '../../../../test/postgres'
import { createKyselyStorage, type KyselyStorage } from '../../src'
import { postgres } from '../../src/drivers/postgres'
import { claim, COMPLETE, leaseOf, newCommit, newRun, newStep, RECOVER_ALL } from '../builders'

let database: PostgresDatabase
let storage: KyselyStorage
let somebody: pg.Client

beforeAll(async () => {
  database = await createDatabase()
  storage = createKyselyStorage({ dialect: postgres({ connectionString: database.url, listen: false }) })
  await storage.migrate()
  somebody = new pg.Client({ connectionString: database.url })
  await somebody.connect()
})

afterAll(async () => {
  await somebody.end()
  await storage.close()
  await database.drop()
})

/** Three runs of one worker, of which a session that is not durably's holds the first. */
async function threeRuns(act: (runs: readonly RunRecord[]) => Promise<void>): Promise<void> {
  await storage.enqueue([newRun(), newRun(), newRun()])
  const runs = await claim(storage, 3)
  await somebody.query('begin')
  await somebody.query('select 1 from durably_runs where id = $1 for update', [runs[0]?.id])
  try {
    await act(runs)
  } finally {
    await somebody.query('rollback')
  }
}

it('renews what nobody holds, and does not take the rest for lost', async () => {
  await threeRuns(async (runs) => {
    const [held, ...free] = runs
    const stale = runs.slice(2).map((run) => ({ ...leaseOf(run), token: 'another' }))
    const answers = await storage.renew([...runs.map(leaseOf), ...stale], 600_000)
    expect(answers.map(({ kept }) => kept)).toEqual([true, true, true, false])
    const leaseOfRun = async (run: RunRecord | undefined) => (await storage.getRun(run?.id ?? ''))?.leaseUntil ?? ''
    expect(await leaseOfRun(held)).toBe(held?.leaseUntil)
    for (const run of free) expect(Date.parse(await leaseOfRun(run))).toBeGreaterThan(Date.parse(run.leaseUntil ?? ''))
  })
})

it('recovers what nobody holds', async () => {
  await threeRuns(async (runs) => {
    await storage.renew(runs.slice(1).map(leaseOf), -1)
    const recovered = await storage.recover(RECOVER_ALL)
    expect(recovered.map(({ id }) => id).sort()).toEqual(
      runs
        .slice(1)
        .map(({ id }) => id)
        .sort(),
    )
  })
})

const BUSY = { kept: false, isBusy: true }

it('commits what nobody holds, and says of the rest that it is busy', async () => {
  await threeRuns(async (runs) => {
    const stale = runs.slice(2).map((run) => ({ ...newCommit(run), lease: { ...leaseOf(run), token: 'another' } }))
    const commits = [...runs.slice(0, 2).map((run) => newCommit(run, { steps: [newStep()] })), ...stale]
    expect(await storage.commit(commits)).toMatchObject([BUSY, { kept: true }, { kept: false }])
    expect((await storage.commit(stale))[0]).toEqual({ kept: false })
    const [held] = commits
    if (held === undefined) throw new Error('There is one.')
    expect(await storage.commit([held])).toEqual([BUSY])
    await somebody.query('rollback')
    expect(await storage.commit([held])).toMatchObject([{ kept: true }])
  })
})

it('a run that creates others is busy as well, and nothing of it is left', async () => {
  await threeRuns(async ([held]) => {
    if (held === undefined) throw new Error('There is one.')
    const child = newRun({ jobName: 'child', parentRunId: held.id })
    expect(await storage.commit([newCommit(held, { steps: [newStep({ child })] })])).toEqual([BUSY])
    expect(await storage.getRun(child.id)).toBe(null)
  })
})

it('a run that ends is as busy as the one that waits for it', async () => {
  const [parent, free] = [newRun({ jobName: 'parent' }), newRun()]
  const child = newRun({ parentRunId: parent.id })
  await storage.enqueue([parent, child, free])
  const commits = (await claim(storage, 20))
    .filter(({ id }) => [child.id, free.id].includes(id))
    .map((run) => newCommit(run, { outcome: COMPLETE }))
  await somebody.query('begin')
  await somebody.query('select 1 from durably_runs where id = $1 for update', [parent.id])
  const answers = await storage.commit(commits)
  const busy = commits.filter((_commit, index) => answers[index]?.kept !== true)
  expect(busy.map(({ lease }) => lease.runId)).toEqual([child.id])
  await somebody.query('rollback')
  expect(await storage.commit(busy)).toMatchObject([{ kept: true }])
})

it('fires what nobody holds, and says of the rest that it is busy', async () => {
  const { schedules } = storage.cluster
  const lead = (await storage.cluster.lead({ name: 'schedules', workerId: 'w', ttlMs: 600_000 })) as Lead
  const content = { jobName: 'job', payload: null, definition: '{}', overlap: 'cancel', source: null } as const
  const all = Array.from({ length: 9 }, () => ({ id: newRun().id, tenant: '', ...content }))
  await schedules.create(all.map((each) => ({ ...each, name: each.id })))
  const before = all.map(({ id }) => newRun({ scheduleId: id, scheduledFor: '2026-01-31T08:00:00.000Z' }))
  await storage.enqueue(before)
  const scheduledFor = '2026-01-31T09:00:00.000Z'
  const firings = all.map(({ id: scheduleId }, index) => ({
    ...{ scheduleId, version: 1, firedUntil: scheduledFor, nextAt: null, missed: 0 },
    runs: [newRun({ scheduleId, scheduledFor })],
    ends: [before[index]?.id ?? ''],
  }))
  const [held, ...free] = firings
  if (held === undefined) throw new Error('There is one.')
  await somebody.query('begin')
  await somebody.query('select 1 from durably_runs where id = $1 for update', held.ends)
  const answers = await schedules.fire(lead, firings)
  await somebody.query('rollback')
  expect(answers[0]).toEqual({ kept: false, isBusy: true, created: [], ended: [] })
  const done = ({ runs, ends: [endedId] }: (typeof firings)[0]) => ({
    ...{ kept: true, created: runs.map(({ id }) => id), ended: [{ id: endedId, status: 'cancelled' }] },
  })
  expect(answers.slice(1)).toMatchObject(free.map(done))
  expect(await schedules.fire(lead, [held])).toMatchObject([done(held)])
})

it('a list that is being claimed when a trigger comes stays as it is', async () => {
  const list = (entries: string) => ({
    run: newRun({ jobName: 'ship', payload: entries }),
    key: 'k',
    max: 9,
    maxBytes: 99,
  })
  const { run } = await storage.debounce.join(list('[1]'))
  await somebody.query('begin')
  await somebody.query(`update durably_runs set attempt = 2 where id = $1`, [run.id])
  const joining = storage.debounce.join(list('[2]'))
  for (let waits = 0; waits === 0; ) {
    const { rows } = await somebody.query('select 1 from pg_locks where pg_backend_pid() = any(pg_blocking_pids(pid))')
    waits = rows.length
  }
  await somebody.query('commit')
  expect(await joining).toMatchObject({ created: true, run: { payload: '[2]' } })
  expect(await storage.getRun(run.id)).toMatchObject({ payload: '[1]' })
})
