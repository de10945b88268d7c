import type { Run, StoredEvent } from '@coji/durably-core'
import type { StepView } from '@coji/durably-react'
import { expect, it } from 'vitest'
import { ticksOf } from './time-axis'
import { timelineOf } from './timeline'

const at = (seconds: number) => new Date(Date.UTC(2026, 0, 1) + seconds * 1000).toISOString()
const second = (ms: number) => (ms - Date.UTC(2026, 0, 1)) / 1000

function runOf(times: {
  readonly created: number
  readonly started: number | null
  readonly finished: number | null
}): Run {
  return {
    createdAt: at(times.created),
    startedAt: times.started === null ? null : at(times.started),
    finishedAt: times.finished === null ? null : at(times.finished),
    status: times.finished !== null ? 'completed' : times.started === null ? 'pending' : 'running',
  } as Run
}

const stepOf = (step: Partial<StepView>) => ({ completedAt: null, kind: 'run', ...step }) as StepView
const eventOf = (type: StoredEvent['type'], seconds: number) => ({ type, timestamp: at(seconds) }) as StoredEvent

function shown(bars: readonly { from: number; to: number; kind: string; isOpen: boolean }[]) {
  return bars.map(({ from, to, kind, isOpen }) => `${second(from)}–${second(to)} ${kind}${isOpen ? ' …' : ''}`)
}

it('draws a run as it was in hands, and what lay between', () => {
  const run = runOf({ created: 0, started: 1, finished: 20 })
  const events = [
    eventOf('run:trigger', 0),
    eventOf('run:start', 1),
    eventOf('run:suspend', 4),
    eventOf('run:start', 10),
    eventOf('run:recover', 15),
    eventOf('run:start', 16),
    eventOf('run:complete', 20),
  ]
  const { run: bars, from, to } = timelineOf({ run, steps: [], events, now: 0 })
  expect(shown(bars)).toEqual([
    '0–1 queued',
    '1–4 working',
    '4–10 waiting',
    '10–15 working',
    '15–16 waiting',
    '16–20 working',
  ])
  expect([second(from), second(to)]).toEqual([0, 20])
})

it('goes on until now', () => {
  const now = Date.UTC(2026, 0, 1) + 9000
  const queued = timelineOf({ run: runOf({ created: 2, started: null, finished: null }), steps: [], events: [], now })
  expect(shown(queued.run)).toEqual(['2–9 queued …'])
  const run = runOf({ created: 0, started: 1, finished: null })
  const steps = [stepOf({ name: 'a', startedAt: at(2), status: 'running', kind: null })]
  const { rows, run: bars } = timelineOf({ run, steps, events: [], now })
  expect(shown(bars)).toEqual(['0–1 queued', '1–9 working …'])
  expect(shown(rows[0]?.bars ?? [])).toEqual(['2–9 working …'])
})

it('puts the attempts of a step into one row, and tells waits from work', () => {
  const steps = [
    stepOf({ name: 'a', startedAt: at(1), completedAt: at(2), status: 'failed' }),
    stepOf({ name: 'b', startedAt: at(3), completedAt: at(6), status: 'completed', kind: 'sleep' }),
    stepOf({ name: 'a', startedAt: at(4), completedAt: at(5), status: 'completed' }),
    stepOf({ name: 'c', startedAt: at(6), status: 'waiting', kind: 'signal' }),
  ]
  const { rows } = timelineOf({ run: runOf({ created: 0, started: 1, finished: 8 }), steps, events: [], now: 0 })
  expect(rows.map(({ name, bars }) => [name, ...shown(bars)])).toEqual([
    ['a', '1–2 failed', '4–5 done'],
    ['b', '3–6 waiting'],
    ['c', '6–8 waiting'],
  ])
})

it('begins with the work when the run waited for longer than it worked', () => {
  const { from, run } = timelineOf({
    run: runOf({ created: 0, started: 100, finished: 101 }),
    steps: [],
    events: [],
    now: 0,
  })
  expect(second(from)).toBe(100)
  expect(shown(run)).toEqual(['100–101 working'])
})

it.each([0.5, 3, 40, 999, 4321, 65_000, 3_600_000, 40 * 3_600_000, 90 * 86_400_000])(
  'marks %d ms at round times',
  (ms) => {
    const ticks = ticksOf(ms, 8)
    expect(ticks.length).toBeGreaterThan(0)
    expect(ticks.length).toBeLessThanOrEqual(9)
    expect(ticks[0]).toEqual({ at: 0, label: '0' })
    expect(new Set(ticks.map(({ label }) => label)).size).toBe(ticks.length)
    for (const tick of ticks) expect(tick.at).toBeLessThanOrEqual(1)
  },
)
