import type { Run } from '@coji/durably'
import { expect, test } from 'vitest'
import { durationOf, waitText } from './run-status'

const NOW = Date.parse('2026-01-01T00:00:00.000Z')
const instant = (ms: number) => new Date(NOW + ms).toISOString()

const PENDING = {
  status: 'pending',
  waitingFor: null,
  availableAt: instant(-1000),
  crashCount: 0,
  attempt: 1,
  startedAt: null,
  finishedAt: null,
}
const run = (fields: Partial<Record<keyof Run, unknown>>) => ({ ...PENDING, ...fields }) as unknown as Run

test.each<readonly [string | null, Partial<Record<keyof Run, unknown>>]>([
  [null, { status: 'running' }],
  ['Waits for its turn.', {}],
  ['Starts in 3 s.', { availableAt: instant(2100) }],
  [
    'It failed. Attempt 2 begins in 1 min 5 s.',
    { waitingFor: { kind: 'retry' }, attempt: 2, availableAt: instant(65_000) },
  ],
  [
    'It lost its worker 3 times in a row. It goes on in 1 s.',
    { crashCount: 3, startedAt: instant(-9000), availableAt: instant(1) },
  ],
  [
    'Its worker is gone. The next one goes on after the last stored step.',
    { crashCount: 1, startedAt: instant(-9000) },
  ],
  ['Waits for nap.', { waitingFor: { kind: 'steps', steps: ['nap'] }, availableAt: null, startedAt: instant(-9000) }],
  ['Put aside: it is new here.', { waitingFor: { kind: 'unpark', reason: 'it is new here.' }, availableAt: null }],
])('says what a run waits for, and how long: %s', (text, fields) => {
  expect(waitText(run(fields), NOW)).toBe(text)
})

test('a run has one duration: from its start to its end, and to now before', () => {
  expect(durationOf(run({}), NOW)).toBe(null)
  expect(durationOf(run({ startedAt: instant(-300) }), NOW)).toBe(300)
  expect(durationOf(run({ startedAt: instant(-300), finishedAt: instant(-100) }), NOW)).toBe(200)
})
