import { describe, expect, it, vi } from 'vitest'
import { paced, PATIENCE_MS } from '../../../../test/pace'
import { reportSuite } from '../../../../test/report'
import type { SqlDurably } from '../../src/index'
import { withLogPersistence } from '../../src/plugins'
import { newFile } from '../instances'
import { findBreaches, installAudit, readAudit } from './audit'
import { observe } from './observer'
import { DRIVERS } from './programs/drivers'
import { followUp, LATE_WRITES, type LateWrite, lateWrite } from './programs/late-writes'
import type { Message } from './programs/parent'
import type { SleeperConfig } from './programs/sleeper'
import { type Program, usePrograms } from './programs'

/** Of the processes that are stopped. The one that takes over has the usual half a minute. */
const LEASE = { staleThreshold: paced(4000), heartbeatInterval: 500 }

const start = usePrograms('sleeper')

interface Sleeper {
  readonly kind: LateWrite
  readonly program: Program
  readonly runId: string
  readonly messages: Message[]
}

/** One process for each kind of late write, each stopped in the middle of its own run. */
function putToSleep(durably: SqlDurably, config: Omit<SleeperConfig, 'kind'>): Promise<readonly Sleeper[]> {
  return Promise.all(
    LATE_WRITES.map(async (kind) => {
      const run = await durably.register({ job: lateWrite(kind, () => false) }).job.trigger({})
      const program = start('sleeper', { ...config, kind })
      const messages: Message[] = []
      program.onMessage((message) => messages.push(message))
      await program.next('paused')
      program.signal('SIGSTOP')
      return { kind, program, runId: run.id, messages }
    }),
  )
}

interface Successor {
  readonly durably: SqlDurably
  /** Lets the runs go on to their end. */
  finish(): Promise<void>
}

/**
 * Waits until the leases have run out, takes all runs over and holds them at the same point. Each has made one commit of
 * its own by then (the log line), so that only epoch and token tell the next commit of the old owner from its next one.
 */
async function takeOver(file: string, runIds: readonly string[]): Promise<Successor> {
  // Its own renewals are put off so far that they do not come in between: they would change what is compared.
  const patient = { heartbeatInterval: 3_600_000, staleThreshold: 4 * 3_600_000 }
  const durably = await observe(file, { concurrency: runIds.length, pollingInterval: 50, ...patient })
  durably.use(withLogPersistence())
  const gate = createGate()
  for (const kind of LATE_WRITES) durably.register({ job: lateWrite(kind, () => gate.opened.then(() => false)) })
  const lines = new Map<string, number>()
  for (const runId of runIds) lines.set(runId, (await durably.getLogs(runId)).length)
  durably.start()
  for (const [runId, count] of lines) {
    await vi.waitFor(async () => expect(await durably.getLogs(runId)).toHaveLength(count + 1), PATIENCE_MS)
  }
  return {
    durably,
    async finish() {
      gate.open()
      await durably.stop()
    },
  }
}

function createGate() {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { open, opened }
}

async function everythingOf(durably: SqlDurably, runId: string): Promise<unknown> {
  return {
    run: await durably.getRun(runId),
    steps: await durably.getSteps(runId),
    logs: await durably.getLogs(runId),
    events: await durably.getEvents(runId),
  }
}

describe.each(DRIVERS)('owners that were stopped past their lease, with %s', (driver) => {
  it('write nothing when they go on, say so once and take the next run', async () => {
    const file = newFile()
    const client = await observe(file)
    installAudit(file)
    const sleepers = await putToSleep(client, { driver, file, lease: LEASE })
    const runIds = sleepers.map(({ runId }) => runId)
    const { durably, finish } = await takeOver(file, runIds)
    const before = new Map<string, unknown>()
    for (const runId of runIds) before.set(runId, await everythingOf(durably, runId))
    const lastInTime = readAudit(file).at(-1)?.position ?? 0

    for (const { program } of sleepers) {
      program.openGate()
      program.signal('SIGCONT')
    }
    for (const { kind, program } of sleepers) {
      expect(await program.next('late commit'), kind).toMatchObject({ kept: false })
      await program.next('lease-lost')
    }
    for (const { kind, program } of sleepers) {
      const next = await client.register({ next: followUp(kind) }).next.trigger({})
      expect(await program.next('completed')).toMatchObject({ runId: next.id, jobName: `after ${kind}` })
    }
    for (const { program } of sleepers) program.write('stop')
    for (const { kind, program } of sleepers) expect(await program.ended, kind).toMatchObject({ code: 0, stderr: '' })

    let attempted = 0
    for (const { kind, runId, messages } of sleepers) {
      const late = messages.filter(({ type }) => type === 'late commit' || type === 'late renewal')
      expect(
        late.filter(({ kept }) => kept !== false),
        `accepted of ${kind}`,
      ).toEqual([])
      expect(late.flatMap(({ wrote = [] }) => wrote)).toEqual(expect.arrayContaining(ATTEMPTS[kind]))
      expect(messages.filter((message) => message.type === 'lease-lost' && message['runId'] === runId)).toHaveLength(1)
      expect(messages.filter(({ type }) => type === 'failed' || type === 'trouble')).toEqual([])
      expect(await everythingOf(durably, runId), kind).toEqual(before.get(runId))
      attempted += late.length
    }
    const late = readAudit(file).filter(({ position, runId }) => position > lastInTime && runIds.includes(runId))
    expect(late).toEqual([])
    await finish()
    for (const runId of runIds) {
      expect(await durably.getRun(runId)).toMatchObject({
        status: 'completed',
        output: { value: runId, result: 'in time' },
      })
    }
    expect(findBreaches(readAudit(file))).toEqual([])
    reportSuite({
      suite: `stopped past the lease, ${driver}`,
      pauses: sleepers.length,
      attempted,
      accepted: late.length,
    })
  })
})

/** What each of them must have tried to write, or the test would prove nothing. */
const ATTEMPTS: Readonly<Record<LateWrite, string[]>> = {
  step: ['step completed', 'event step:complete'],
  checkpoint: ['step started'],
  'failed step': ['step failed', 'event step:fail'],
  'progress, log and event': ['progress', 'log', 'event run:progress'],
  result: ['outcome complete'],
  error: ['outcome fail'],
}
