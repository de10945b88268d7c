import { type ClusterStorage, type Lead, LEADER, type WorkerBeat } from '@coji/durably-core/storage'
import type { Durably } from '@coji/durably-core'
import { setTimeout as pass } from 'node:timers/promises'
import { sql } from 'kysely'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { scaled } from '../../../../test/scale'
import { paced } from '../../../../test/pace'
import { type CutProxy, startCutProxy } from '../../../../test/cut-proxy'
import { startOwnPostgres } from '../../../../test/postgres'
import { reportSuite } from '../../../../test/report'
import { postgres } from '../../src/postgres'
import { openMigrated } from '../instances'
import { findBreaches } from '../processes/audit'
import { usePrograms } from '../processes/programs'
import type { Message } from '../processes/programs/parent'
import { findRepeats, findWrongOutputs, installAudit, readAudit } from './audit'
import { newWitness, observe } from './databases'
import { FIVE_STEPS, fiveSteps } from './programs/five-steps'
import type { LabourerConfig } from './programs/labourer'
import { readBodyStarts } from './witness'

const RESTARTS = scaled({ quick: 2, full: 5 })
const AWAY_MS = paced(1100)
const WORKERS = 3
const RUNS_A_ROUND = 60
const MOST_ATTEMPTS_A_SECOND = 20

/** A worker that the leader may forget at once, and nobody else. */
const GONE: WorkerBeat = {
  ...{ workerId: 'gone', presence: 'detached' as const, capacity: 1, placedJobs: [], labels: {}, codeVersion: null },
  ttlMs: 1,
}

function clusterOf({ storage: { cluster } }: Durably): ClusterStorage {
  if (cluster === undefined) throw new Error('This storage can do it.')
  return cluster
}

const start = usePrograms('labourer')

async function newServer() {
  const server = await startOwnPostgres()
  onTestFinished(() => server.end())
  const { url } = await server.createDatabase()
  return { server, url }
}

async function newProxy(server: { readonly host: string; readonly port: number }): Promise<CutProxy> {
  const proxy = await startCutProxy(server)
  onTestFinished(() => proxy.close())
  return proxy
}

/** The most attempts within any second of a time. */
function mostASecond(
  attempts: readonly number[],
  { from, to }: { readonly from: number; readonly to: number },
): number {
  const within = attempts.filter((at) => at >= from && at <= to)
  return Math.max(0, ...within.map((first) => within.filter((at) => at >= first && at < first + 1000).length))
}

describe('a Postgres that is restarted under load', () => {
  it('is found again by every worker, nothing is lost or failed, and no epoch of a leader comes again (G13)', async () => {
    const { server, url } = await newServer()
    const witness = newWitness()
    const proxies = await Promise.all(Array.from({ length: WORKERS }, () => newProxy(server)))
    const durably = await observe(url)
    await installAudit(durably)
    const { job } = durably.register({ job: fiveSteps({ stepMs: 0, onBody: () => {} }) })
    const messages: (Message & { readonly worker: number })[] = []
    const lease = { staleThreshold: 300_000, heartbeatInterval: 1000 }
    const programs = proxies.map((proxy, worker) => {
      const settings = { concurrency: 4, stepMs: 60, skewMs: 0, lease, deadWorkerIds: [], witness }
      const config: LabourerConfig = { ...settings, url: proxy.through(url), workerId: `worker-${worker}` }
      const program = start('labourer', config)
      program.onMessage((message) => messages.push({ ...message, worker }))
      return program
    })
    await Promise.all(programs.map((program) => program.next('recovered')))

    const completedSince = (count: number) =>
      new Set(messages.slice(count).flatMap(({ type, worker }) => (type === 'run:complete' ? [worker] : [])))
    const cluster = clusterOf(durably)
    const leads: Lead[] = []
    const takeLead = async () => {
      const lead = await cluster.lead({ name: LEADER, workerId: `leader ${leads.length}`, ttlMs: 1 })
      if (lead !== null) leads.push(lead)
    }
    let total = 0
    const add = async (count: number) => {
      await job.batchTrigger(Array.from({ length: count }, (_, n) => ({ payload: { n: total + n } })))
      total += count
    }
    const whoHasCompleted = async () => {
      // Whoever is late finds something to do.
      if ((await durably.counts()).pending === 0) await add(4 * WORKERS)
      return completedSince(heard).size
    }
    let mostAttempts = 0
    let heard = 0
    for (let restart = 0; restart < RESTARTS; restart++) {
      await add(RUNS_A_ROUND / 2)
      await expect.poll(whoHasCompleted, { interval: 10 }).toBe(WORKERS)
      await add(RUNS_A_ROUND / 2)
      await takeLead()
      const { pending, running } = await durably.counts()
      expect(pending + running).toBeGreaterThan(0)
      const from = performance.now()
      await server.stop(restart % 2 === 0 ? 'fast' : 'immediate')
      await pass(AWAY_MS)
      const to = performance.now()
      heard = messages.length
      await server.start()
      for (const { attempts } of proxies) mostAttempts = Math.max(mostAttempts, mostASecond(attempts, { from, to }))
    }
    await expect.poll(whoHasCompleted, { interval: 10 }).toBe(WORKERS)
    await expect.poll(async () => (await durably.counts()).completed, { interval: 50 }).toBe(total)
    await takeLead()
    expect(leads.map(({ epoch }) => epoch)).toEqual(Array.from({ length: RESTARTS + 1 }, (_, n) => n + 1))
    await cluster.placement.beat(GONE)
    const forgottenBy = await Promise.all(leads.map((lead) => cluster.placement.forgetWorkers(lead, -60_000)))
    expect(forgottenBy).toEqual([...Array(RESTARTS).fill(0), 1])
    for (const program of programs) program.write('stop')
    for (const program of programs) expect(await program.ended).toMatchObject({ code: 0, stderr: '' })

    expect(await durably.counts()).toMatchObject({ completed: total, failed: 0, pending: 0, running: 0 })
    expect(messages.filter(({ type }) => type === 'run:fail')).toEqual([])
    expect(await findWrongOutputs(durably)).toEqual([])
    const writes = await readAudit(durably)
    expect(findBreaches(writes)).toEqual([])
    expect(findRepeats(writes, readBodyStarts(witness))).toEqual([])
    expect(writes.filter(({ stepStatus }) => stepStatus === 'completed').length).toBe(total * FIVE_STEPS.length)

    expect(messages.filter(({ type }) => type === 'trouble')).not.toEqual([])
    expect(mostAttempts).toBeGreaterThan(0)
    expect(mostAttempts).toBeLessThanOrEqual(MOST_ATTEMPTS_A_SECOND)
    reportSuite({ suite: 'Postgres restarted', restarts: RESTARTS, runs: total, mostAttemptsASecond: mostAttempts })
  })

  it('is not stormed by jobs that want a transaction each', async () => {
    const { server, url } = await newServer()
    const proxy = await newProxy(server)
    const durably = await openMigrated(postgres({ connectionString: proxy.through(url) }), {
      concurrency: 30,
      pollingInterval: 100,
    })
    let open = () => {}
    const gate = new Promise<void>((resolve) => {
      open = resolve
    })
    let waiting = 0
    const job = durably.defineJob({ name: 'shop', input: z.object({}) }, async (ctx) => {
      waiting += 1
      await gate
      await ctx.transaction('buy', async (trx) => void (await sql`select 1`.execute(trx)))
    })
    await job.batchTrigger(Array.from({ length: 30 }, () => ({ payload: {} })))
    durably.start()
    await expect.poll(() => waiting).toBe(30)
    const from = performance.now()
    await server.stop('fast')
    open()
    await pass(AWAY_MS)
    const most = mostASecond(proxy.attempts, { from, to: performance.now() })
    await server.start()
    await expect.poll(async () => (await durably.counts()).completed).toBe(30)
    await durably.close()
    expect(most).toBeLessThanOrEqual(MOST_ATTEMPTS_A_SECOND)
  })
})
