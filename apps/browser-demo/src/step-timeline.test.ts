import type { Run, Step, StoredEvent } from '@coji/durably'
import { expect, test } from 'vitest'
import type { LiveStep } from './demo-state'
import { timelineOf, type TimelineParams } from './step-timeline'
import { timeAxisOf } from './time-axis'

const BEGIN = Date.parse('2026-01-01T00:00:00.000Z')
const instant = (ms: number) => new Date(BEGIN + ms).toISOString()

interface History {
  readonly status: Run['status']
  readonly events: readonly (readonly [ms: number, type: string, stepName?: string])[]
  readonly steps: readonly (readonly [name: string, from: number, to: number])[]
  readonly liveSteps?: readonly LiveStep[]
  readonly now: number
}

/** What the timeline reads, and nothing else. */
function params({ status, events, steps, liveSteps = [], now }: History): TimelineParams {
  const finishedAt = status === 'running' || status === 'pending' ? null : instant(now)
  return {
    run: { status, startedAt: instant(0), finishedAt } as Run,
    events: events.map(([ms, type, stepName], seq) => ({ type, stepName, seq, timestamp: instant(ms) }) as StoredEvent),
    steps: steps.map(([name, from, to]) => {
      return { name, status: 'completed', startedAt: instant(from), completedAt: instant(to) } as Step
    }),
    runId: 'run',
    logs: [],
    liveSteps,
    now: BEGIN + now,
  }
}

/** As its events tell of it: begun, and with an end also ended. */
function live(name: string, from: number, to?: number): LiveStep {
  const step = { name, startedAt: instant(from), end: null, untilSeq: null }
  if (to === undefined) return step
  return { ...step, end: { kind: 'completed', at: instant(to), durationMs: to - from }, untilSeq: 7 }
}

test('a crash makes a gap from the last sign of life to the next execution, and cuts the step off', () => {
  const history: History = {
    status: 'completed',
    now: 1000,
    events: [
      [0, 'run:start'],
      [100, 'step:complete', 'one'],
      [110, 'step:start', 'two'],
      [600, 'run:recover'],
      [700, 'run:start'],
      [900, 'step:complete', 'two'],
    ],
    steps: [
      ['one', 10, 100],
      ['two', 710, 900],
    ],
  }
  const timeline = timelineOf(params(history))
  expect(timeline?.gaps).toEqual([{ why: 'crash', from: BEGIN + 110, to: BEGIN + 700 }])
  expect(timeline?.executions).toEqual([BEGIN, BEGIN + 700])
  const bars = timeline?.rows.map(({ name, bars: each }) => [
    name,
    each.map(({ kind, execution }) => [kind, execution]),
  ])
  expect(bars).toEqual([
    ['one', [['completed', 1]]],
    [
      'two',
      [
        ['cut', 1],
        ['completed', 2],
      ],
    ],
  ])
})

test('a step that only its event tells of runs until now, and never backwards', () => {
  const open = (ms: number) => [live('two', ms)]
  const history: History = { status: 'running', now: 500, events: [[0, 'run:start']], steps: [['one', 0, 100]] }
  const bar = (liveSteps: readonly LiveStep[]) => timelineOf(params({ ...history, liveSteps }))?.rows.at(-1)?.bars[0]
  expect(bar(open(120))).toMatchObject({ kind: 'running', from: BEGIN + 120, to: BEGIN + 500 })
  expect(bar(open(520))).toMatchObject({ kind: 'running', from: BEGIN + 520, to: BEGIN + 520 })
})

test('a step that has ended stays, as its event told, until its row is read', () => {
  const events = [
    [0, 'run:start'],
    [110, 'step:start', 'two'],
  ] as const
  const history = { status: 'running', now: 500, events, liveSteps: [live('two', 120, 300)] } as const
  const ended = [{ kind: 'completed', from: BEGIN + 120, to: BEGIN + 300, execution: 1 }]
  const rowsOf = (steps: History['steps']) => timelineOf(params({ ...history, steps }))?.rows.map(({ bars }) => bars)
  expect(rowsOf([])).toEqual([ended])
  // Its row was read before the event that says so.
  expect(rowsOf([['two', 121, 301]])).toEqual([[{ ...ended[0], from: BEGIN + 121, to: BEGIN + 301 }]])
})

test('what an execution found done is counted', () => {
  const timeline = timelineOf(
    params({
      status: 'completed',
      now: 900,
      events: [
        [0, 'run:start'],
        [500, 'run:recover'],
        [600, 'run:start'],
      ],
      steps: [
        ['one', 0, 100],
        ['two', 100, 200],
        ['three', 700, 900],
      ],
    }),
  )
  expect(timeline?.skipped).toBe(2)
})

test('a night without a worker takes little room on the axis', () => {
  const night = 8 * 3_600_000
  const timeline = timelineOf(
    params({
      status: 'completed',
      now: night + 1000,
      events: [
        [0, 'run:start'],
        [night, 'run:recover'],
        [night, 'run:start'],
      ],
      steps: [
        ['one', 0, 1000],
        ['two', night, night + 1000],
      ],
    }),
  )
  if (timeline === null) throw new Error('There is a timeline.')
  const { shareAt, ticks } = timeAxisOf(timeline, { isLive: false })
  expect(shareAt(BEGIN + 1000)).toBeGreaterThan(0.4)
  expect(shareAt(BEGIN + night)).toBeLessThan(0.6)
  expect([shareAt(BEGIN), shareAt(timeline.to)]).toEqual([0, 1])
  const shares = ticks.map(({ share }) => share)
  expect(shares).toEqual([...shares].sort((a, b) => a - b))
  expect(ticks.at(-1)?.text).toMatch(/^8 h/)
})

test('the last time on the axis has room for its text', () => {
  for (let ms = 200; ms < 250; ms += 5) {
    const timeline = timelineOf(
      params({ status: 'completed', now: ms, events: [[0, 'run:start']], steps: [['one', 0, ms]] }),
    )
    if (timeline === null) throw new Error('There is a timeline.')
    const { ticks } = timeAxisOf(timeline, { isLive: false })
    expect(ticks.length).toBeGreaterThan(3)
    expect(ticks.at(-1)?.share).toBeLessThanOrEqual(0.8)
  }
})
