import { describe, expect, it } from 'vitest'
import { reportSuite } from '../../../../test/report'
import { LONG_PATIENCE_MS } from '../../../../test/pace'
import { scaled } from '../../../../test/scale'
import { newFile } from '../instances'
import { findBreaches, installAudit, mostHolders, readAudit } from './audit'
import { contend, FIRST_FAILURE } from './programs/contend'
import type { ContenderConfig } from './programs/contender'
import { DRIVERS } from './programs/drivers'
import type { Message } from './programs/parent'
import { observe } from './observer'
import { type Program, usePrograms } from './programs'
import { countBodies, readSightings } from './witness'

const RUNS = scaled({ quick: 201, full: 2001 })

const start = usePrograms('contender')

/** A third of the runs each. */
const KEYS = [
  { concurrencyKey: 'alone', concurrencyLimit: 1 },
  { concurrencyKey: 'three', concurrencyLimit: 3 },
  {},
] as const

/** Until all runs have completed; those that fail at first are retried as soon as that is known. */
async function untilCompleted(programs: readonly Program[], retry: (runId: string) => Promise<unknown>) {
  const messages: Message[] = []
  const retries: Promise<unknown>[] = []
  await new Promise<void>((resolve) => {
    let completed = 0
    const hear = (message: Message) => {
      messages.push(message)
      if (message.type === 'failed') retries.push(retry(String(message['runId'])))
      if (message.type === 'completed') completed += 1
      if (completed === RUNS) resolve()
    }
    for (const program of programs) program.onMessage(hear)
  })
  await Promise.all(retries)
  return messages
}

describe.each(DRIVERS)('two worker processes on one file, with %s', (driver) => {
  it('run each body once, never more runs of a key than its limit', {
    timeout: LONG_PATIENCE_MS,
  }, async () => {
    const file = newFile()
    const witness = `${file}.witness`
    const durably = await observe(file)
    const { job } = durably.register({ job: contend({ onBody: async () => {} }) })
    const payloads = Array.from({ length: RUNS }, (_, n) => ({ n, fails: n % 10 === 0 }))
    await job.batchTrigger(payloads.map((payload) => ({ payload, options: KEYS[payload.n % 3] })))
    installAudit(file)

    const programs = ['left', 'right'].map((workerId) =>
      start('contender', { driver, file, witness, workerId } satisfies ContenderConfig),
    )
    await Promise.all(programs.map((program) => program.next('up')))
    const ended = untilCompleted(programs, (runId) => durably.retry(runId))
    const startedAt = performance.now()
    for (const program of programs) program.write('go')
    await Promise.all(programs.map((program) => program.next('begun')))
    for (const program of programs) program.write('on')
    const messages = await ended
    const runsPerSecond = Math.round((RUNS * 1000) / (performance.now() - startedAt))
    for (const program of programs) program.write('stop')
    for (const program of programs) expect(await program.ended).toMatchObject({ code: 0, stderr: '' })

    const failures = payloads.filter(({ fails }) => fails).length
    expect(messages.filter(({ error }) => error === FIRST_FAILURE)).toHaveLength(failures)
    const isExpected = ({ type, error }: Message) => ['completed', 'begun'].includes(type) || error === FIRST_FAILURE
    expect(messages.filter((message) => !isExpected(message))).toEqual([])
    expect(await durably.counts()).toMatchObject({ completed: RUNS, failed: 0, pending: 0, running: 0 })
    const sightings = readSightings(witness)
    const starts = [...countBodies(sightings).values()]
    expect(starts.length).toBe(RUNS * 2)
    expect(Math.max(...starts)).toBe(1)
    for (const { pid } of programs) {
      expect(sightings.filter((sighting) => sighting.pid === pid).length).toBeGreaterThan(sightings.length / 100)
    }

    const writes = readAudit(file)
    expect(findBreaches(writes)).toEqual([])
    // A claim, two steps and the end of each run, and for some a retry, a claim and an end: the triggers saw it all.
    expect(writes.filter(({ source }) => source === 'runs').length).toBeGreaterThanOrEqual(RUNS * 4 + failures * 3)
    expect(writes.filter(({ epoch }) => epoch === 2)).not.toEqual([])
    expect(writes.filter(({ source }) => source === 'steps').length).toBe(RUNS * 2)
    expect(mostHolders(writes, 'alone')).toBe(1)
    expect(mostHolders(writes, 'three')).toBe(3)
    reportSuite({ suite: `two workers, ${driver}`, runs: RUNS, writes: writes.length, runsPerSecond })
  })
})
