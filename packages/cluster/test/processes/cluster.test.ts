import type { DueSchedule, Lead, LeadRecord, RunRecord, ScheduleRecord } from '@coji/durably-core/storage'
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
const FIRST_STEP_MS = 20
const EVERY_MS = 200
const LEADERS = scaled({ quick: 2, full: 200 })
const MOST_LEASES_OF_A_TAKEOVER = 2

/** Of the leader; that of a run is twice as long, as `programs/member.ts` has it. */
const NETWORK_LEASE_MS = scaled({ quick: 1000, full: 1500 })
const RUN_LEASE_MS = 2 * NETWORK_LEASE_MS
const LONG_FIRST_STEP_MS = 500
const ROUNDS = scaled({ quick: 1, full: 12 })
const RUNS_A_HARM = 12
const RUNS_AT_HEALING = 6
const TENANTS = ['', 'a', 'b']
const MOST_LEASES = 3

type Harm = (proxy: RoughProxy) => void

const HARMS: readonly Harm[] = [
  (proxy) => proxy.cut(),
  (proxy) => proxy.delay(1.25 * RUN_LEASE_MS),
  (proxy) => proxy.deafen(),
  (proxy) => proxy.halfClose(),
]

interface Hit {
  /** What the member had in hand. */
  readonly held: readonly RunRecord[]
  readonly led: LeadRecord | null
}

beforeAll(buildPrograms, LONG_PATIENCE_MS)

describe('a cluster on Postgres', { timeout: LONG_PATIENCE_MS }, () => {
  let database: PostgresDatabase
  let storage: KyselyStorage
  let children: ChildProcess[]
  let proxies: RoughProxy[]
  let enqueued: Set<string>

  beforeEach(async () => {
    database = await createDatabase()
    storage = createKyselyStorage({ dialect: postgres({ connectionString: database.url }) })
    await storage.migrate()
    children = []
    proxies = []
    enqueued = new Set()
  })

  afterEach(async () => {
    await Promise.all(children.map(killed))
    await Promise.all(proxies.map((proxy) => proxy.close()))
    await storage.close()
    await database.drop()
  })

  async function start(
    workerId: string,
    { url = database.url, leaseMs = LEASE_MS, firstStepMs = FIRST_STEP_MS, every = '' } = {},
  ): Promise<ChildProcess> {
    const child = startProgram('member', [url, workerId, String(leaseMs), String(firstStepMs), every])
    children.push(child)
    await spoken(child)
    return child
  }

  async function until(isSo: () => Promise<boolean>): Promise<void> {
    while (!(await isSo())) await pass(50)
  }

  const leader = () => storage.cluster.getLead('leader')

  /** What no member touches: a run of a job that none of them knows, and a schedule that they look at once. */
  async function leaveAlone(): Promise<string> {
    const run = newRun({ jobName: 'nobody has it' })
    await storage.enqueue([run])
    const { schedules } = storage.cluster
    await until(async () => (await schedules.list({})).length > 0)
    const [{ payload, overlap, definition }] = (await schedules.list({})) as [ScheduleRecord]
    const daily = definition.replace(`"ms":${EVERY_MS}`, '"ms":86400000')
    const content = { jobName: run.jobName, payload, overlap, definition: daily }
    await schedules.create([{ id: 'daily', tenant: '', name: 'daily', source: null, ...content }])
    await until(async () => (await schedules.get({ tenant: '', name: 'daily' }))?.schedule.nextAt !== null)
    return run.id
  }

  /** Whether it may still assign the run and move the schedule on, both of which are as they were read. */
  async function mayWrite(lead: Lead, runId: string): Promise<readonly boolean[]> {
    const { placement, schedules } = storage.cluster
    const { version } = (await storage.getRun(runId)) as RunRecord
    const assigned = await placement.assign(lead, [{ runId, version, workerId: 'a', events: [] }])
    const { schedule } = (await schedules.get({ tenant: '', name: 'daily' })) as DueSchedule
    const { id: scheduleId, firedUntil, nextAt } = schedule
    const firing = { scheduleId, version: schedule.version, firedUntil, nextAt, runs: [], missed: 0, ends: [] }
    const fired = await schedules.fire(lead, [firing])
    return [...assigned, ...fired.map(({ kept }) => kept)]
  }

  it('loses no tick to a leader that sleeps past its lease, nor does that one assign anything when it wakes', async () => {
    const members = new Map<string, ChildProcess>()
    for (const workerId of ['a', 'b']) members.set(workerId, await start(workerId, { every: String(EVERY_MS) }))
    const takeovers: number[] = []
    await until(async () => (await leader())?.isOver === false)
    const untouched = await leaveAlone()
    while (takeovers.length < LEADERS) {
      const before = (await leader()) as LeadRecord
      const sleeper = members.get(before.workerId.split(' ')[0] ?? '')
      sleeper?.kill('SIGSTOP')
      const stoppedAt = performance.now()
      await until(async () => (await leader())?.epoch !== before.epoch)
      takeovers.push(performance.now() - stoppedAt)
      // It hardly ever comes to write under its old lead when it wakes.
      expect(await mayWrite(before, untouched)).toEqual([false, false])
      sleeper?.kill('SIGCONT')
      await pass(2 * EVERY_MS)
      // Whoever leads now has had something done before it sleeps as well.
      const hasLed = ({ leaderEpoch }: RunRecord) => (leaderEpoch ?? 0) > before.epoch
      await until(async () => (await storage.getRuns({ jobNames: ['work'], limit: 20 })).some(hasLed))
    }
    await Promise.all(children.splice(0).map(killed))
    expect(await mayWrite((await leader()) as LeadRecord, untouched)).toEqual([true, true])
    const [schedule] = await storage.cluster.schedules.list({ source: 'app' })
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
    // A busy machine has outliers.
    if (SCALE === 'full') expect(median(leases)).toBeLessThan(MOST_LEASES_OF_A_TAKEOVER)
    reportSuite({
      ...{ suite: 'leaders that sleep', takeovers: takeovers.length, instants: instants.length },
      'median takeover in leases': median(leases).toFixed(1),
      'longest takeover in leases': Math.max(...leases).toFixed(1),
    })
  })

  /** Each of them reaches the database in a way of its own. */
  async function startBehindProxies(workerIds: readonly string[]): Promise<ReadonlyMap<string, RoughProxy>> {
    const entries = workerIds.map(async (workerId) => {
      const proxy = await startRoughProxy(database.url)
      proxies.push(proxy)
      const url = proxy.through(database.url)
      await start(workerId, { url, leaseMs: NETWORK_LEASE_MS, firstStepMs: LONG_FIRST_STEP_MS })
      return [workerId, proxy] as const
    })
    return new Map(await Promise.all(entries))
  }

  async function enqueue(count: number): Promise<ReadonlySet<string>> {
    const runs = Array.from({ length: count }, (_, n) =>
      newRun({ jobName: 'work', tenant: TENANTS[n % 3] ?? '', concurrencyKey: n % 4 === 0 ? 'k' : null }),
    )
    await storage.enqueue(runs)
    for (const { id } of runs) enqueued.add(id)
    return new Set(runs.map(({ id }) => id))
  }

  async function runsAmong(ids: ReadonlySet<string>): Promise<readonly RunRecord[]> {
    return (await storage.getRuns({ jobNames: ['work'] })).filter(({ id }) => ids.has(id))
  }

  /** These need an answer of the database before they can end. */
  async function inFirstStep(ids: ReadonlySet<string>, workerId: string): Promise<readonly RunRecord[]> {
    return (await runsAmong(ids)).filter(
      ({ status, ownerId, currentStepIndex }) => status === 'running' && ownerId === workerId && currentStepIndex === 0,
    )
  }

  async function haveCompleted(ids: ReadonlySet<string>): Promise<boolean> {
    return (await runsAmong(ids)).every(({ status }) => status === 'completed')
  }

  async function leadingWorker(): Promise<string> {
    await until(async () => (await leader())?.isOver === false)
    return (await leader())?.workerId.split(' ')[0] ?? ''
  }

  async function hitWhileItWorks(proxy: RoughProxy, victim: string, harm: Harm): Promise<Hit> {
    for (;;) {
      const ids = await enqueue(RUNS_A_HARM)
      await until(async () => (await inFirstStep(ids, victim)).length > 0 || (await haveCompleted(ids)))
      // Who has only just come back may give its share of them to the others.
      if (await haveCompleted(ids)) continue
      harm(proxy)
      const held = await inFirstStep(ids, victim)
      if (held.length > 0) return { held, led: await leader() }
      // The first steps were over too soon.
      proxy.heal()
    }
  }

  async function areTakenOver(held: readonly RunRecord[]): Promise<boolean> {
    const now = await runsAmong(new Set(held.map(({ id }) => id)))
    const epochs = new Map(now.map(({ id, leaseEpoch }) => [id, leaseEpoch]))
    return held.every(({ id, leaseEpoch }) => (epochs.get(id) ?? 0) > leaseEpoch)
  }

  /** All of it while the member is cut off: nobody else can have done it. */
  async function othersTakeOver(proxy: RoughProxy, victim: string, { held, led }: Hit): Promise<void> {
    await until(() => areTakenOver(held))
    await Promise.all([
      // What it wrote as the holder comes to a database where it is none.
      proxy.arrived(),
      until(() => haveCompleted(new Set(held.map(({ id }) => id)))),
      until(async () => !isOf(victim, led) || ((await leader())?.epoch ?? 0) > (led?.epoch ?? 0)),
    ])
  }

  /** Of the runs that were there, and of some that come just before. */
  async function healed(proxy: RoughProxy): Promise<number> {
    await enqueue(RUNS_AT_HEALING)
    proxy.heal()
    const healedAt = performance.now()
    await until(async () => {
      const { pending, assigned, running, orphaned } = await storage.counts({})
      return pending + assigned + running + orphaned === 0
    })
    return performance.now() - healedAt
  }

  async function expectEachStepOnce({ id }: RunRecord): Promise<void> {
    const steps = await storage.getSteps(id)
    expect(steps.map(({ name, status }) => [name, status])).toEqual([
      ['first', 'completed'],
      ['second', 'completed'],
    ])
    const epochs = steps.map(({ leaseEpoch }) => leaseEpoch)
    expect(epochs).toEqual([...epochs].sort((a, b) => a - b))
  }

  async function expectLaterHolder({ id, leaseEpoch }: RunRecord): Promise<void> {
    expect((await storage.getSteps(id)).at(-1)?.leaseEpoch).toBeGreaterThan(leaseEpoch)
  }

  it('takes over the work and the lead of a member that is cut off, and has it back when the network is good', async () => {
    const members = await startBehindProxies(['a', 'b', 'c'])
    const healing: number[] = []
    const held: RunRecord[] = []
    let leadersHit = 0
    // The lead may go to another one before the harm comes to it: then there are more rounds.
    const most = () => ROUNDS * HARMS.length * (leadersHit === 0 ? 5 : 1)
    for (let count = 0; count < most(); count++) {
      const leading = await leadingWorker()
      const followers = [...members.keys()].filter((workerId) => workerId !== leading)
      // Each harm comes to both, from round to round.
      const isOfLeader = (count + Math.floor(count / HARMS.length)) % 2 === 0
      const victim = isOfLeader ? leading : (followers[count % followers.length] ?? '')
      const proxy = members.get(victim) as RoughProxy
      const hit = await hitWhileItWorks(proxy, victim, HARMS[count % HARMS.length] as Harm)
      await othersTakeOver(proxy, victim, hit)
      held.push(...hit.held)
      leadersHit += isOf(victim, hit.led) ? 1 : 0
      healing.push(await healed(proxy))
    }
    const runs = await storage.getRuns({ jobNames: ['work'] })
    expect(new Set(runs.map(({ id }) => id))).toEqual(enqueued)
    expect(await storage.counts({})).toMatchObject({ completed: enqueued.size })
    for (const run of runs) await expectEachStepOnce(run)
    for (const run of held) await expectLaterHolder(run)
    expect(leadersHit).toBeGreaterThan(0)
    const leases = Math.max(...healing) / RUN_LEASE_MS
    if (SCALE === 'full') expect(leases).toBeLessThan(MOST_LEASES)
    reportSuite({
      ...{ suite: 'a network that breaks', harms: healing.length, 'of leaders': leadersHit, runs: runs.length },
      ...{ 'runs taken over': held.length, 'longest until all have ended, in leases': leases.toFixed(1) },
    })
  })
})

function isOf(workerId: string, led: LeadRecord | null): boolean {
  return led?.workerId.startsWith(`${workerId} `) ?? false
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}
