import { copyFileSync, existsSync } from 'node:fs'
import SqliteDatabase from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { reportSuite } from '../../../../test/report'
import { LONG_PATIENCE_MS } from '../../../../test/pace'
import { scaled } from '../../../../test/scale'
import { createDurably, createMemoryStorage } from '../../src/index'
import { newFile } from '../instances'
import { DRIVERS } from './programs/drivers'
import { fortySteps, STEPS } from './programs/forty-steps'
import type { MortalConfig } from './programs/mortal'
import { observe } from './observer'
import { type Program, usePrograms } from './programs'
import { bodyOf, countBodies, readSightings } from './witness'

const KILLS = scaled({ quick: 10, full: 80 })

const start = usePrograms('mortal')

/** When a process dies: a part of the time forty steps take after it is up, or at the n-th message of a type. */
type Point = { readonly afterPart: number } | { readonly type: 'start' | 'commit'; readonly nth: number }

/** Half of them at any time, a quarter each while a body runs and right after a commit; anywhere in two runs. */
function choosePoint(index: number): Point {
  if (index % 2 === 0) return { afterPart: Math.random() * 1.5 }
  return { type: index % 4 === 1 ? 'start' : 'commit', nth: 1 + Math.floor(Math.random() * STEPS * 1.5) }
}

async function killAt(program: Program, point: Point, fortyStepsMs: number): Promise<void> {
  await program.next('up')
  if ('afterPart' in point) {
    await new Promise((resolve) => setTimeout(resolve, point.afterPart * fortyStepsMs))
    program.signal('SIGKILL')
  } else {
    let seen = 0
    program.onMessage(({ type }) => {
      if (type === point.type) seen += 1
      if (seen === point.nth) program.signal('SIGKILL')
    })
  }
  expect(await program.ended).toMatchObject({ signal: 'SIGKILL' })
}

interface Found {
  readonly integrity: unknown
  readonly runs: ReadonlyMap<string, string>
  /** Completed steps and their output. */
  readonly recorded: ReadonlyMap<string, string>
}

/** At a copy, so that it is the next process that has to recover the write-ahead log. */
function lookAt(file: string): Found {
  const copy = newFile()
  for (const suffix of ['', '-wal']) if (existsSync(file + suffix)) copyFileSync(file + suffix, copy + suffix)
  const database = new SqliteDatabase(copy)
  const rows = (sql: string) => database.prepare<[], Record<string, string>>(sql).all()
  const steps = rows("select run_id, name, output from durably_steps where status = 'completed'")
  const found = {
    integrity: database.pragma('integrity_check', { simple: true }),
    runs: new Map(rows('select id, status from durably_runs').map(({ id = '', status = '' }) => [id, status])),
    recorded: new Map(
      steps.map(({ run_id: runId = '', name: stepName = '', output = '' }) => [bodyOf({ runId, stepName }), output]),
    ),
  }
  database.close()
  return found
}

/** What a run comes to when nothing happens to it. */
async function undisturbed(seed: string): Promise<unknown> {
  const durably = createDurably({ storage: createMemoryStorage() })
  const { job } = durably.register({ job: fortySteps(() => {}) })
  const { id } = await job.trigger({ seed })
  await durably.runUntilIdle()
  return (await job.getRun(id))?.output
}

async function timeOfFortySteps(config: MortalConfig): Promise<number> {
  const durably = await observe(config.file)
  await durably.register({ job: fortySteps(() => {}) }).job.trigger({ seed: 'first' })
  await durably.close()
  const program = start('mortal', { ...config, finishes: true })
  await program.next('up')
  const upAt = performance.now()
  expect(await program.ended).toMatchObject({ code: 0, stderr: '' })
  // One slow moment of the machine must not stretch every kill after it.
  return Math.min(performance.now() - upAt, 400)
}

describe.each(DRIVERS)('a process that is killed, with %s', (driver) => {
  it('is followed by one that goes on after the last recorded step', {
    timeout: LONG_PATIENCE_MS,
  }, async () => {
    const file = newFile()
    const base = { driver, file, witness: `${file}.witness`, deadWorkerIds: [], finishes: false }
    const fortyStepsMs = await timeOfFortySteps({ ...base, workerId: 'undisturbed' })
    const triggered: unknown[] = []
    let recorded: Found['recorded'] = new Map()
    let deadWorkerIds: readonly string[] = []
    let midway = 0
    for (let index = 0; index < KILLS; index++) {
      const seen = readSightings(base.witness).length
      const workerId = `worker-${index}`
      const program = start('mortal', { ...base, workerId, deadWorkerIds })
      deadWorkerIds = [...deadWorkerIds, workerId]
      program.onMessage((message) => {
        if (message.type === 'triggered') triggered.push(message['runId'])
        if (message.type === 'recovered') deadWorkerIds = [workerId]
      })
      const point = choosePoint(index)
      await killAt(program, point, fortyStepsMs)

      const again = readSightings(base.witness)
        .slice(seen)
        .map(bodyOf)
        .filter((body) => recorded.has(body))
      expect(again, `recorded bodies that ran again before ${JSON.stringify(point)}`).toEqual([])
      const found = lookAt(file)
      expect(found.integrity).toBe('ok')
      expect([...found.runs.keys()]).toEqual(expect.arrayContaining(triggered))
      for (const [body, output] of recorded) expect(found.recorded.get(body)).toBe(output)
      recorded = found.recorded
      if (recorded.size % STEPS !== 0) midway += 1
    }
    const seen = readSightings(base.witness).length
    const last = start('mortal', { ...base, workerId: 'last', deadWorkerIds, finishes: true })
    expect(await last.ended).toMatchObject({ code: 0, stderr: '' })
    const sightings = readSightings(base.witness)
    expect(
      sightings
        .slice(seen)
        .map(bodyOf)
        .filter((body) => recorded.has(body)),
    ).toEqual([])

    const durably = await observe(file)
    const runs = await durably.getRuns()
    for (const run of runs) {
      const { seed } = run.payload as { seed: string }
      expect(run).toMatchObject({ status: 'completed', output: await undisturbed(seed) })
    }
    expect(lookAt(file)).toMatchObject({ integrity: 'ok' })
    const starts = [...countBodies(sightings).values()]
    expect(starts.length).toBe(runs.length * STEPS)
    expect(Math.max(...starts)).toBeLessThanOrEqual(1 + KILLS)
    const startsByProcess = sightings.map((sighting) => `${sighting.pid} ${bodyOf(sighting)}`)
    expect(new Set(startsByProcess).size).toBe(startsByProcess.length)
    // Kills that all came between two runs, or never in a body, would prove nothing.
    expect(midway).toBeGreaterThanOrEqual(KILLS / 2)
    const repeated = starts.filter((count) => count > 1).length
    expect(repeated).toBeGreaterThan(0)
    reportSuite({ suite: `kill -9, ${driver}`, kills: KILLS, midway, runs: runs.length, repeatedBodies: repeated })
  })
})
