import type { Run, Step } from '@coji/durably-core'
import { expect, test } from 'vitest'
import { LiveRun, type RunEvent } from './live-run'
import { stepsOf } from './run-view'

let seq = 0

function heard(live: LiveRun, type: RunEvent['type'], fields: object = {}): void {
  seq += 1
  live.hear({
    type,
    runId: 'r',
    jobName: 'j',
    timestamp: `2026-01-01T00:00:0${seq % 10}.000Z`,
    seq,
    ...fields,
  } as RunEvent)
}

function shown(live: LiveRun, steps: readonly Partial<Step>[], status: Run['status'] = 'running') {
  const read = { run: { status } as Run, steps: steps as readonly Step[] }
  return stepsOf(read, live).map((step) => `${step.name} ${step.status}`)
}

const first = { stepName: 'first', stepIndex: 0 }
const second = { stepName: 'second', stepIndex: 1 }

test('a body runs until its step ends, or the execution that began it', () => {
  const live = new LiveRun()
  heard(live, 'step:start', first)
  heard(live, 'step:start', second)
  expect(shown(live, [])).toEqual(['first running', 'second running'])
  heard(live, 'step:complete', { ...second, output: 2 })
  expect(shown(live, [])).toEqual(['first running', 'second completed'])
  heard(live, 'run:recover', { crashed: true })
  expect(shown(live, [])).toEqual(['second completed'])
})

test('what was read to be completed stays completed, whatever is heard late', () => {
  const live = new LiveRun()
  heard(live, 'step:start', first)
  expect(shown(live, [{ name: 'first', index: 0, status: 'completed' }])).toEqual(['first completed'])
})

test('no body runs of a run that does not', () => {
  const live = new LiveRun()
  heard(live, 'step:start', first)
  expect(shown(live, [], 'pending')).toEqual([])
})

test('a wait that was read gives way to the body that runs, and failed attempts stay', () => {
  const live = new LiveRun()
  heard(live, 'step:start', first)
  const steps = [
    { name: 'first', index: 0, status: 'failed', startedAt: '1' },
    { name: 'first', index: 0, status: 'waiting', startedAt: '1' },
  ] as const
  expect(shown(live, steps)).toEqual(['first failed', 'first running'])
})

test('what ended before the database was read is in it', () => {
  const live = new LiveRun()
  heard(live, 'step:fail', { ...first, error: 'no' })
  heard(live, 'run:progress', { progress: { current: 1 } })
  expect(shown(live, [])).toEqual(['first failed'])
  expect(live.progress).toEqual({ current: 1 })
  live.noteRead({ heard: live.heard, seq: 0 })
  expect(shown(live, [])).toEqual([])
  expect(live.progress).toBe(null)
})

test('an event that comes again is not heard again', () => {
  const live = new LiveRun()
  heard(live, 'step:chunk', { ...first, chunk: 'a' })
  seq -= 1
  heard(live, 'step:chunk', { ...first, chunk: 'a' })
  expect(live.streams).toMatchObject([{ text: 'a' }])
})
