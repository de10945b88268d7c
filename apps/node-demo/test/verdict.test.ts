import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { judge } from '../src/verdict'
import { readSightings, writeSighting } from '../src/witness'

const saw = (pid: number, stepName: string, runId = 'run') => ({ pid, runId, stepName })
const steps = ['a', 'b', 'c', 'd']

describe('judge', () => {
  test('counts what ran once, was skipped and ran again', () => {
    const sightings = [saw(1, 'a'), saw(1, 'b'), saw(1, 'c'), saw(2, 'c'), saw(2, 'd'), saw(2, 'a', 'another run')]
    const verdict = judge({ runId: 'run', steps, recordedAtKill: ['a', 'b'], sightings, firstPid: 1 })
    expect(verdict).toEqual({ steps: 4, ranOnce: 3, skipped: 2, ranAgain: 1, faults: [] })
  })

  test('finds a recorded step that ran again', () => {
    const sightings = [...steps.map((name) => saw(1, name)), saw(2, 'b')]
    const verdict = judge({ runId: 'run', steps, recordedAtKill: ['a', 'b'], sightings, firstPid: 1 })
    expect(verdict).toMatchObject({ skipped: 1, faults: ['"b" ran again although it was recorded'] })
  })

  test('finds a step that was recorded and never ran', () => {
    const sightings = [saw(1, 'a'), saw(1, 'b'), saw(2, 'c')]
    const verdict = judge({ runId: 'run', steps, recordedAtKill: [], sightings, firstPid: 1 })
    expect(verdict.faults).toEqual(['"d" is recorded but never ran'])
  })
})

describe('the witness file', () => {
  let folder: string | undefined
  afterEach(async () => {
    if (folder !== undefined) await rm(folder, { recursive: true })
  })

  test('tells what was written to it, in order', async () => {
    folder = await mkdtemp(join(tmpdir(), 'durably-demo-test-'))
    const path = join(folder, 'witness.log')
    const sightings = [saw(1, 'rows 1-2000'), saw(2, 'merge 1 of 8', 'other')]
    for (const sighting of sightings) writeSighting(path, sighting)
    expect(await readSightings(path)).toEqual(sightings)
  })
})
