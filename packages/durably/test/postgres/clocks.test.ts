import { describe, expect, it, vi } from 'vitest'
import { paced, PATIENCE_MS } from '../../../../test/pace'
import { findBreaches } from '../processes/audit'
import { type Program, usePrograms } from '../processes/programs'
import type { Message } from '../processes/programs/parent'
import { findRepeats, installAudit, readAudit } from './audit'
import { newDatabase, newWitness, observe } from './databases'
import { fiveSteps } from './programs/five-steps'
import type { LabourerConfig } from './programs/labourer'
import { NAP_MS } from './programs/napping'
import { readBodyStarts } from './witness'

const TEN_MINUTES = 600_000
const SKEWS = [TEN_MINUTES, -TEN_MINUTES, 0]
const LEASE = { staleThreshold: paced(6000), heartbeatInterval: 600 }
/** More than the lease: who judged leases by a clock of its own, or did not renew them, would take these over. */
const LONG_RUN_MS = LEASE.staleThreshold + 500
const DELAY_MS = 900

const start = usePrograms('labourer')

async function startSkewed(url: string) {
  const witness = newWitness()
  const messages: Message[] = []
  const programs: Program[] = []
  for (const [index, skewMs] of SKEWS.entries()) {
    const workerId = `skewed-${index}`
    const config = { url, witness, workerId, deadWorkerIds: [], concurrency: 3, stepMs: LONG_RUN_MS / 5, skewMs }
    const program = start('labourer', { ...config, lease: LEASE } satisfies LabourerConfig)
    program.onMessage((message) => messages.push(message))
    programs.push(program)
  }
  await Promise.all(programs.map((program) => program.next('recovered')))
  return { programs, messages, starts: () => readBodyStarts(witness) }
}

async function untilCompleted(messages: readonly Message[], count: number): Promise<void> {
  await vi.waitFor(() => expect(messages.filter(({ type }) => type === 'run:complete')).toHaveLength(count), {
    timeout: PATIENCE_MS,
    interval: 50,
  })
}

/** The time of the run's own machine, whoever ran the body. */
function trueTime(programs: readonly Program[], start: { readonly at: number; readonly pid: number }): number {
  return start.at - (SKEWS[programs.findIndex(({ pid }) => pid === start.pid)] ?? 0)
}

describe('workers whose clocks are off by ten minutes', () => {
  it('take no run from each other, and keep delays, timers and retries (G10)', async () => {
    const url = await newDatabase()
    const durably = await observe(url)
    await installAudit(durably)
    const { job } = durably.register({ job: fiveSteps({ stepMs: 0, onBody: () => {} }) })
    const { programs, messages, starts } = await startSkewed(url)
    await job.batchTrigger(Array.from({ length: 7 }, (_, n) => ({ payload: { n } })))
    const triggered: { readonly runId: string; readonly at: number }[] = []
    for (const program of programs) {
      const at = Date.now()
      program.write(String(DELAY_MS))
      triggered.push({ runId: String((await program.next('triggered'))['runId']), at })
    }
    await untilCompleted(messages, 7 + triggered.length)

    const seen = starts()
    for (const { runId, at } of triggered) {
      const times = new Map(
        seen.filter((body) => body.runId === runId).map((body) => [body.stepName, trueTime(programs, body)]),
      )
      const [before = 0, first = 0, second = 0] = ['before', 'again 1', 'again 2'].map((name) => times.get(name))
      for (const [waited, asked] of [
        [before - at, DELAY_MS],
        [first - before, NAP_MS],
        [second - first, NAP_MS],
      ] as const) {
        expect(waited).toBeGreaterThanOrEqual(asked - 5)
        expect(waited).toBeLessThan(TEN_MINUTES / 2)
      }
    }
    expect(messages.filter(({ type }) => ['run:recover', 'worker:lease-lost', 'run:fail'].includes(type))).toEqual([])
    const writes = await readAudit(durably)
    expect(findBreaches(writes)).toEqual([])
    expect(findRepeats(writes, seen)).toEqual([])
    // All of them took part, or nothing was shown.
    expect(new Set(seen.map(({ pid }) => pid)).size).toBe(SKEWS.length)
  })

  it('recover what a dead one left when its lease is over, not before', async () => {
    const url = await newDatabase()
    const durably = await observe(url)
    const { job } = durably.register({ job: fiveSteps({ stepMs: 0, onBody: () => {} }) })
    await job.batchTrigger(Array.from({ length: 9 }, (_, n) => ({ payload: { n } })))
    const { programs, messages, starts } = await startSkewed(url)
    await vi.waitFor(() => expect(new Set(starts().map(({ pid }) => pid)).size).toBe(SKEWS.length), PATIENCE_MS)
    const [dead, ...others] = programs
    if (dead === undefined) throw new Error('There is no worker.')
    const killedAt = Date.now()
    dead.signal('SIGKILL')
    await dead.ended
    const left = (await durably.getRuns({ status: ['running'] })).filter(({ ownerId }) => ownerId === 'skewed-0')
    expect(left.length).toBeGreaterThan(0)
    await untilCompleted(messages, 9)

    const again = starts().filter(({ epoch, runId }) => epoch > 1 && left.some(({ id }) => id === runId))
    expect(new Set(again.map(({ runId }) => runId)).size).toBe(left.length)
    const first = Math.min(...again.map((body) => trueTime(programs, body)))
    // The last renewal was some intervals before, if the machine was busy.
    expect(first - killedAt).toBeGreaterThanOrEqual(LEASE.staleThreshold / 2)
    expect(first - killedAt).toBeLessThan(TEN_MINUTES / 2)
    for (const program of others) program.write('stop')
    for (const program of others) expect(await program.ended).toMatchObject({ code: 0, stderr: '' })
  })
})
