import { createDurably, defineJob } from '@coji/durably-core'
import type { Lease } from '@coji/durably-core/storage'
import { runCommit } from '@coji/durably-core/testing'
import { createKyselyStorage } from '@coji/durably-storage-kysely'
import { betterSqlite3 } from '@coji/durably-storage-kysely/better-sqlite3'
import Database from 'better-sqlite3'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { createCluster } from '../src/index'
import { schemaOf } from './stage'

const RUNS = 20

it('a restored backup takes no write of the past, and runs nothing again that it has recorded', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'durably-backup-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'live.db')
  const backup = join(folder, 'backup.db')
  const began: { readonly world: string; readonly name: string }[] = []
  const open = (world: string, at: string, isHalfWay = () => {}) => {
    const storage = createKyselyStorage({ dialect: betterSqlite3(at) })
    const durably = createDurably({ storage, logger: null, workerId: world, concurrency: 4, pollingInterval: 20 })
    const job = defineJob({ name: 'job', input: schemaOf<number>(), placement: 'leader' }, async (ctx, n) => {
      for (const step of ['a', 'b', 'c']) {
        await ctx.run(step, async () => {
          began.push({ world, name: `${n} ${step}` })
          if (step === 'c' && n === RUNS / 2) isHalfWay()
        })
      }
    })
    const { job: handle } = durably.register({ job })
    const cluster = createCluster(durably, { pollingInterval: 20, lease: 900, reassignAfter: 100 })
    onTestFinished(() => durably.close())
    return { storage, durably, handle, cluster }
  }
  let halfWay = () => {}
  const reached = new Promise<void>((resolve) => {
    halfWay = resolve
  })
  const live = open('live', file, () => halfWay())
  await live.storage.migrate()
  for (let n = 0; n < RUNS; n++) await live.handle.trigger(n)
  live.durably.start()
  await reached
  new Database(file, { readonly: true }).exec(`vacuum into '${backup}'`)
  const old = { ...(await live.storage.cluster.getLead('leader')), name: 'leader' } as never
  await live.durably.stop()

  const raw = new Database(backup)
  const recorded = raw.prepare(`select r.payload || ' ' || s.name as name from durably_steps as s
    join durably_runs as r on r.id = s.run_id where s.status = 'completed'`)
  const done = new Set((recorded.all() as { readonly name: string }[]).map(({ name }) => name))
  const running =
    raw.prepare(`select id as runId, lease_epoch as epoch, claim_token as token, leader_epoch as leaderEpoch,
    commit_no as commits from durably_runs where status = 'running'`)
  const held = running.all() as (Lease & { readonly commits: number })[]
  // So much later that all leases of that moment are over.
  raw.exec(`update durably_runs set lease_until = '2020-01-01T00:00:00.000Z' where status = 'running';
    update durably_leaders set lead_until = '2020-01-01T00:00:00.000Z'`)
  raw.close()
  expect([done.size > 0, held.length > 0]).toEqual([true, true])

  const restored = open('restored', backup)
  restored.durably.start()
  for (const run of await restored.storage.getRuns({})) await restored.handle.wait(run.id)
  const again = began.filter(({ world, name }) => world === 'restored' && done.has(name))
  expect(again).toEqual([])
  expect(await restored.storage.counts({})).toMatchObject({ completed: RUNS, failed: 0 })

  // What a worker and a leader of before hold, who are led to the restored database.
  const ends = held.map(({ commits, ...lease }) =>
    runCommit(
      { lease, commitNo: commits + 1 },
      { outcome: { kind: 'complete', output: null, events: [], eventsIfCancelled: [] } },
    ),
  )
  const lost = held.map(() => ({ kept: false }))
  expect(await restored.storage.commit(ends)).toMatchObject(lost)
  expect(
    await restored.storage.renew(
      ends.map(({ lease }) => lease),
      1000,
    ),
  ).toMatchObject(lost)
  const run = await restored.durably.trigger('job', 99)
  const { version } = (await restored.storage.getRun(run.id)) ?? { version: 0 }
  const byTheOldLeader = [{ runId: run.id, version, workerId: 'live', events: [] }]
  expect(await restored.storage.cluster.placement.assign(old, byTheOldLeader)).toEqual([false])
})
