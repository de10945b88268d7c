import { describe, expect, it } from 'vitest'
import { verdictOf } from './report.mjs'

const STEPS = {
  what: 'steps',
  work: 'steps',
  on: 'postgres',
  limit: 'commit',
  peers: ['slow', 'quick'],
  goal: { ofLimit: 0.5, ofPeer: 2 },
}
const LATENCY = { what: 'latency', work: 'latency', on: 'postgres', limit: 'commit', goal: { withinLimits: 10 } }

function results(values: Readonly<Record<string, readonly number[]>>) {
  const entries = Object.entries(values).map(([name, numbers]) => [name, numbers.map((value) => ({ value }))] as const)
  return new Map(entries)
}

const measured = (ours: readonly number[], limit: number) =>
  results({
    'steps · durably · postgres': ours,
    'commit · limit · postgres': [limit],
    'steps · slow · postgres': [100],
    'steps · quick · postgres': [200],
  })

describe('a row of the table', () => {
  it('takes medians, the limit, and the best peer', () => {
    const verdict = verdictOf(STEPS, measured([100, 500, 900], 1000))
    expect(verdict).toMatchObject({ now: { median: 500, least: 100, most: 900 }, ofLimit: 0.5, ofPeer: 2.5 })
    expect(verdict).toMatchObject({ best: { engine: 'quick' }, isReached: true })
  })

  it('is not reached when one part of its goal is not', () => {
    expect(verdictOf(STEPS, measured([399], 700)).isReached).toBe(false)
    expect(verdictOf(STEPS, measured([499], 1000)).isReached).toBe(false)
  })

  it('says nothing about what was not measured', () => {
    const verdict = verdictOf(STEPS, results({ 'steps · durably · postgres': [500] }))
    expect(verdict).toMatchObject({ ofLimit: null, ofPeer: null, best: null, isReached: null })
  })

  it('counts a time in pieces of the limit', () => {
    const times = { 'commit · limit · postgres': [5000] }
    expect(verdictOf(LATENCY, results({ ...times, 'latency · durably · postgres': [2] }))).toMatchObject({
      ofLimit: 10,
      isReached: true,
    })
    expect(verdictOf(LATENCY, results({ ...times, 'latency · durably · postgres': [2.1] })).isReached).toBe(false)
  })

  it('gives a time the ratio of how many times as fast', () => {
    const row = { ...LATENCY, peers: ['slow'], goal: { ofPeer: 1 } }
    const both = { 'latency · durably · postgres': [4], 'latency · slow · postgres': [2] }
    expect(verdictOf(row, results(both))).toMatchObject({ ofPeer: 0.5, isReached: false })
  })
})
