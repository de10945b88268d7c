import type { Durably, DurablyEvent, Run, Step } from '@coji/durably'
import { expect, test } from 'vitest'
import { INITIAL_STATE } from './demo-state'
import { afterRead, trackLiveSteps } from './live-steps'
import { createObservable } from './observable'

type Told = Partial<DurablyEvent> & { readonly type: string }

/** What the demo has in mind after these events, while `selectedId` is looked at. */
function after(events: readonly Told[], selectedId = 'run') {
  const listeners = new Map<string, (event: Told) => void>()
  const on = (type: string, listener: (event: Told) => void) => listeners.set(type, listener)
  const state = createObservable({ ...INITIAL_STATE, selectedId })
  trackLiveSteps({ on } as unknown as Durably, state)
  const timestamp = '2026-01-01T00:00:00.000Z'
  for (const event of events) listeners.get(event.type)?.({ runId: 'run', timestamp, ...event } as Told)
  return state.get().liveSteps
}

const BEGUN: Told = { type: 'step:start', stepName: 'one' }
const ENDED: Told = { type: 'step:complete', stepName: 'one', duration: 5, seq: 7 }
const read = (lastEventSequence: number, fields: Partial<Run> = {}) =>
  ({ id: 'run', lastEventSequence, finishedAt: null, ...fields }) as Run
const names = (live: ReturnType<typeof after>) => (live.get('run') ?? []).map(({ name }) => name)

test('a step that has ended is kept until the database has been read that far', () => {
  const live = after([BEGUN, ENDED])
  expect(live.get('run')).toMatchObject([{ name: 'one', end: { kind: 'completed', durationMs: 5 } }])
  expect(names(afterRead(live, read(6), []))).toEqual(['one'])
  expect(names(afterRead(live, read(7), []))).toEqual([])
})

test('the steps of an execution that ended are kept as long, and those of a run that nobody looks at are not', () => {
  const events = [BEGUN, { type: 'run:recover', seq: 8 }] as const
  expect(names(afterRead(after(events), read(7), []))).toEqual(['one'])
  expect(names(afterRead(after(events), read(8), []))).toEqual([])
  expect(names(after(events, 'another'))).toEqual([])
  expect(names(after([BEGUN], 'another'))).toEqual(['one'])
})

test('a step of which no end was told goes when its row is there, or its run has ended', () => {
  const live = after([BEGUN])
  expect(names(afterRead(live, read(9), []))).toEqual(['one'])
  expect(names(afterRead(live, read(9), [{ name: 'one', status: 'completed' } as Step]))).toEqual([])
  expect(names(afterRead(live, read(9, { finishedAt: '2026-01-01T00:00:09.000Z' }), []))).toEqual([])
})
