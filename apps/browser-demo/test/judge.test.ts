import { describe, expect, test } from 'vitest'
import { judge } from './judge'

const sessions = [1_000, 2_000]
const at = (ms: number) => new Date(ms).toISOString()

function step(index: number, leaseEpoch: number, startedMs: number) {
  const name = index === 0 ? 'open' : `rows ${index * 10 - 9}-${index * 10}`
  return { name, index, status: 'completed', leaseEpoch, startedAt: at(startedMs) }
}

const steps = [step(0, 1, 1_100), step(1, 1, 1_200), step(2, 2, 2_100)]
const starts = [
  { session: 0, part: 1 },
  { session: 0, part: 2 },
  { session: 1, part: 2 },
]

describe('the judge', () => {
  test('acquits a run whose unrecorded step ran again', () => {
    expect(judge({ sessions, steps, starts })).toEqual({ parts: 2, skipped: 1, ranAgain: 1, faults: [] })
  })

  test('finds a recorded step that ran again', () => {
    const { faults, skipped } = judge({ sessions, steps, starts: [...starts, { session: 1, part: 1 }] })
    expect(faults).toEqual(['"rows 1-10" ran again although lease 1 had recorded it'])
    expect(skipped).toBe(0)
  })

  test('finds a step that nobody ran', () => {
    const { faults } = judge({ sessions, steps, starts: starts.slice(1) })
    expect(faults).toEqual(['"rows 1-10" is recorded by a session that never ran it'])
  })

  test('finds a lease that outlived its session', () => {
    const { faults } = judge({ sessions, steps: [...steps.slice(0, 2), step(2, 1, 2_100)], starts })
    expect(faults).toEqual(['"rows 11-20" was recorded by lease 1 after a restart, "rows 1-10" by 1 before'])
  })

  test('finds rows that are twice there, missing or unfinished', () => {
    const twice = judge({ sessions, steps: [...steps, step(2, 2, 2_100)], starts })
    expect(twice.faults).toEqual(['a step has more than one row', 'the steps are numbered 0,1,2,2'])
    const missing = judge({ sessions, steps: [step(0, 1, 1_100), step(2, 2, 2_100)], starts })
    expect(missing.faults).toEqual(['the steps are numbered 0,2'])
    const unfinished = judge({ sessions, steps: [{ ...step(0, 1, 1_100), status: 'started' }], starts })
    expect(unfinished.faults).toEqual(['"open" is started'])
  })
})
