import { newRun } from '@coji/durably-core/testing'
import { createKyselyStorage, type KyselyStorage } from '@coji/durably-storage-kysely'
import { postgres } from '@coji/durably-storage-kysely/postgres'
import type { ChildProcess } from 'node:child_process'
import { setTimeout as pass } from 'node:timers/promises'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { LONG_PATIENCE_MS } from '../../../../test/pace'
import { createDatabase, type PostgresDatabase } from '../../../../test/postgres'
import { reportSuite } from '../../../../test/report'
import { SCALE, scaled } from '../../../../test/scale'
import { buildPrograms, killed, spoken, startProgram } from './programs'
import { type RoughProxy, startRoughProxy } from './rough-proxy'

const LEASE_MS = 1500
/** Of a run, as `programs/member.ts` has it; the other one is the leader's. */
const RUN_LEASE_MS = 2 * LEASE_MS
const EVERY_MS = 200
const LEADERS = scaled({ quick: 2, full: 200 })
const ROUNDS = scaled({ quick: 1, full: 20 })
const RUNS_A_ROUND = 20
const MOST_LEASES = 3

beforeAll(buildPrograms, LONG_PATIENCE_MS)

describe('a cluster on Postgres', { timeout: LONG_PATIENCE_MS }, () => {
  let database: PostgresDatabase
  let storage: KyselyStorage
  let children: ChildProcess[]

  beforeEach(async () => {
    database = await createDatabase()
    storage = createKyselyStorage({ dialect: postgres({ connectionString: database.url }) })
    await storage.migrate()
    children = []
  })

  afterEach(async () => {
    await Promise.all(children.map(killed))
    await storage.close()
    await database.drop()
  })

  async function start(workerId: string, { url = database.url, every = '' } = {}): Promise<ChildProcess> {
    const child = startProgram('member', [url, workerId, String(LEASE_MS), every])
    children.push(child)
    await spoken(child)
    return child
  }

  async function until(isSo: () => Promise<boolean>): Promise<void> {
    while (!(await isSo())) await pass(50)
  }

  const leader = () => storage.cluster.getLead('leader')

  it('loses no tick to a leader that sleeps past its lease, nor does that one assign anything when it wakes', async () => {
    const members = new Map<string, ChildProcess>()
    for (const workerId of ['a', 'b']) members.set(workerId, await start(workerId, { every: String(EVERY_MS) }))
    const takeovers: number[] = []
    await until(async () => (await leader())?.isOver === false)
    while (takeovers.length < LEADERS) {
      const before = await leader()
      const sleeper = members.get(before?.workerId.split(' ')[0] ?? '')
      sleeper?.kill('SIGSTOP')
      const stoppedAt = performance.now()
      await until(async () => (await leader())?.epoch !== before?.epoch)
      takeovers.push(performance.now() - stoppedAt)
      sleeper?.kill('SIGCONT')
      await pass(2 * EVERY_MS)
    }
    await Promise.all(children.splice(0).map(killed))
    const [schedule] = await storage.cluster.schedules.list({})
    const runs = await storage.getRuns({ jobNames: ['work'] })
    const instants = runs.map(({ scheduledFor }) => Date.parse(scheduledFor ?? '')).sort((a, b) => a - b)
    const first = Date.parse(schedule?.createdAt ?? '') + EVERY_MS
    expect(instants).toEqual(instants.map((_, index) => first + index * EVERY_MS))
    const byTime = [...runs]
      .filter(({ assignedAt, leaderEpoch }) => assignedAt != null && leaderEpoch !== null)
      .sort((a, b) => ((a.assignedAt ?? '') < (b.assignedAt ?? '') ? -1 : 1))
    const epochs = byTime.map(({ leaderEpoch }) => leaderEpoch ?? 0)
    expect(epochs).toEqual([...epochs].sort((a, b) => a - b))
    expect(new Set(epochs).size).toBeGreaterThan(1)
    const leases = takeovers.map((ms) => ms / LEASE_MS)
    reportSuite({
      ...{ suite: 'leaders that sleep', takeovers: takeovers.length, instants: instants.length },
      'longest takeover in leases': Math.max(...leases).toFixed(1),
    })
  })

  it('ends all work when the network is good again', async () => {
    const proxy: RoughProxy = await startRoughProxy(database.url)
    const url = proxy.through(database.url)
    await Promise.all(['a', 'b', 'c'].map((workerId) => start(workerId, { url })))
    const healing: number[] = []
    for (let round = 0; round < ROUNDS; round++) {
      for (const harm of [() => proxy.cut(), () => proxy.delay(300), () => proxy.halfClose()]) {
        const tenants = ['', 'a', 'b']
        await storage.enqueue(
          Array.from({ length: RUNS_A_ROUND }, (_, n) =>
            newRun({ jobName: 'work', tenant: tenants[n % 3] ?? '', concurrencyKey: n % 4 === 0 ? 'k' : null }),
          ),
        )
        await until(async () => (await storage.counts({})).completed > 0)
        harm()
        await pass(LEASE_MS)
        proxy.heal()
        const healedAt = performance.now()
        await until(async () => {
          const { pending, assigned, running, orphaned } = await storage.counts({})
          return pending + assigned + running + orphaned === 0
        })
        healing.push(performance.now() - healedAt)
      }
    }
    const runs = await storage.getRuns({ jobNames: ['work'] })
    expect(runs.map(({ status }) => status)).toEqual(Array(3 * ROUNDS * RUNS_A_ROUND).fill('completed'))
    for (const { id } of runs) {
      const steps = await storage.getSteps(id)
      expect(steps.map(({ name, status }) => [name, status])).toEqual([
        ['first', 'completed'],
        ['second', 'completed'],
      ])
      const epochs = steps.map(({ leaseEpoch }) => leaseEpoch)
      expect(epochs).toEqual([...epochs].sort((a, b) => a - b))
    }
    await proxy.close()
    const leases = Math.max(...healing) / RUN_LEASE_MS
    if (SCALE === 'full') expect(leases).toBeLessThan(MOST_LEASES)
    reportSuite({
      ...{ suite: 'a network that breaks', rounds: 3 * ROUNDS, runs: runs.length },
      'longest until all have ended, in leases': leases.toFixed(1),
    })
  })
})
