import { describe, expect, it, vi } from 'vitest'
import { paced, PATIENCE_MS } from '../../../../test/pace'
import { reportSuite } from '../../../../test/report'
import type { SqlDurably } from '../../src/index'
import { withLogPersistence } from '../../src/plugins'
import { findBreaches } from '../processes/audit'
import { type Program, usePrograms } from '../processes/programs'
import { LATE_WRITES, lateWrite } from '../processes/programs/late-writes'
import type { Message } from '../processes/programs/parent'
import { installAudit, readAudit } from './audit'
import { newDatabase, observe } from './databases'
import type { LateSleeperConfig } from './programs/late-sleeper'

/** Of the processes that are stopped. The one that takes over has the usual half a minute. */
const LEASE = { staleThreshold: paced(5000), heartbeatInterval: 500 }
const SLEEPERS = 3
const OF_EACH_KIND = 2
const RUNS_EACH = OF_EACH_KIND * LATE_WRITES.length

const start = usePrograms('late-sleeper')

interface Sleeper {
  readonly program: Program
  readonly runIds: readonly string[]
  readonly messages: Message[]
}

interface StartSleeperParams {
  readonly url: string
  readonly workerId: string
  /** Triggers the runs of one process. */
  readonly trigger: () => Promise<unknown>
}

/** A process in the middle of runs of all kinds. One after another: the first would take all. */
async function startSleeper({ url, workerId, trigger }: StartSleeperParams): Promise<Sleeper> {
  await trigger()
  const program = start('late-sleeper', { url, workerId, runs: RUNS_EACH, lease: LEASE } satisfies LateSleeperConfig)
  const messages: Message[] = []
  program.onMessage((message) => messages.push(message))
  const { runIds } = await program.next('paused')
  return { program, runIds: runIds as string[], messages }
}

/** With nothing on its way to the database. */
async function putToSleep({ program }: Sleeper): Promise<void> {
  program.write('block')
  await program.next('blocked')
  program.signal('SIGSTOP')
}

/** Takes all runs over when the leases have run out, and holds each at the same point, after a commit of its own. */
async function takeOver(url: string, runIds: readonly string[]) {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  const held = new Set<string>()
  const durably = await observe(url, { concurrency: runIds.length, pollingInterval: 50 })
  durably.use(withLogPersistence())
  for (const kind of LATE_WRITES) {
    durably.register({
      job: lateWrite(kind, async (runId) => {
        held.add(runId)
        await opened
        return false
      }),
    })
  }
  durably.start()
  await vi.waitFor(() => expect([...held].sort()).toEqual([...runIds].sort()), PATIENCE_MS)
  // The line that each has logged by now is on its way in a commit of its own.
  for (const runId of runIds) {
    await vi.waitFor(async () => expect(await durably.getLogs(runId)).toHaveLength(2), PATIENCE_MS)
  }
  return { durably, open }
}

async function everythingOf(durably: SqlDurably, runId: string): Promise<unknown> {
  const {
    leaseUntil: _leaseUntil,
    heartbeatAt: _heartbeatAt,
    version: _version,
    updatedAt: _updatedAt,
    ...run
  } = JSON.parse(JSON.stringify(await durably.getRun(runId)))
  return {
    run,
    steps: await durably.getSteps(runId),
    logs: await durably.getLogs(runId),
    events: await durably.getEvents(runId),
  }
}

describe('owners on Postgres that were stopped past their lease', () => {
  it('write nothing when they go on, and say so once for each run (G4, G11)', async () => {
    const url = await newDatabase()
    const client = await observe(url)
    await installAudit(client)
    const jobs = LATE_WRITES.map((kind) => client.register({ job: lateWrite(kind, () => false) }).job)
    const payloads = Array.from({ length: OF_EACH_KIND }, () => ({ payload: {} }))
    const trigger = () => Promise.all(jobs.map((job) => job.batchTrigger(payloads)))
    const sleepers: Sleeper[] = []
    for (let n = 0; n < SLEEPERS; n++) sleepers.push(await startSleeper({ url, workerId: `sleeper-${n}`, trigger }))
    await Promise.all(sleepers.map(putToSleep))
    const runIds = sleepers.flatMap((sleeper) => sleeper.runIds)
    const { durably, open } = await takeOver(url, runIds)
    const before = new Map<string, unknown>()
    for (const runId of runIds) before.set(runId, await everythingOf(durably, runId))
    const lastInTime = (await readAudit(durably)).at(-1)?.position ?? 0

    for (const { program } of sleepers) {
      program.openGate()
      program.signal('SIGCONT')
    }
    for (const { messages } of sleepers) {
      await vi.waitFor(() => {
        expect(messages.filter(({ type }) => type === 'lease-lost').length).toBeGreaterThanOrEqual(RUNS_EACH)
        const answered = messages.filter(({ type }) => type === 'late commit').map(({ runId }) => runId)
        expect(new Set(answered).size).toBe(RUNS_EACH)
      }, PATIENCE_MS)
    }
    for (const { program } of sleepers) program.write('stop')
    for (const { program } of sleepers) expect(await program.ended).toMatchObject({ code: 0, stderr: '' })

    const messages = sleepers.flatMap((sleeper) => sleeper.messages)
    const commits = messages.filter(({ type }) => type === 'late commit')
    const attempted = [...commits, ...messages.filter(({ type }) => type === 'late renewal')]
    expect(attempted.filter(({ kept }) => kept !== false)).toEqual([])
    expect(attempted.length).toBeGreaterThanOrEqual(30)
    expect(new Set(commits.map(({ runId }) => runId)).size).toBeGreaterThanOrEqual(30)
    const lost = messages.filter(({ type }) => type === 'lease-lost').map(({ runId }) => String(runId))
    expect(lost.sort()).toEqual([...runIds].sort())
    expect(messages.filter(({ type }) => type === 'failed' || type === 'trouble')).toEqual([])
    for (const runId of runIds) expect(await everythingOf(durably, runId)).toEqual(before.get(runId))
    const late = (await readAudit(durably)).filter(({ position }) => position > lastInTime)
    const { workerId } = durably.health()
    expect(late.filter(({ owner }) => owner !== workerId)).toEqual([])
    // It may have renewed meanwhile, and nothing else.
    expect(late.filter(({ source }) => source !== 'runs')).toEqual([])

    open()
    await durably.stop()
    for (const runId of runIds) {
      expect(await durably.getRun(runId)).toMatchObject({ status: 'completed', output: { result: 'in time' } })
    }
    expect(findBreaches(await readAudit(durably))).toEqual([])
    reportSuite({
      suite: 'stopped past the lease, Postgres',
      pauses: runIds.length,
      attempted: attempted.length,
      accepted: late.filter(({ owner }) => owner !== workerId).length,
    })
  })
})
