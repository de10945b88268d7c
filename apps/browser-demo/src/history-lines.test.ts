import type { Run, Step, StoredEvent } from '@coji/durably'
import { expect, test } from 'vitest'
import { historyLines } from './history-lines'

test('the log tells the durations that the rows have, whatever the events measured', () => {
  const instant = (ms: number) => new Date(Date.parse('2026-01-01T00:00:00.000Z') + ms).toISOString()
  const lines = historyLines({
    runId: 'run',
    run: { startedAt: instant(0), finishedAt: instant(500) } as Run,
    steps: [{ name: 'one', status: 'completed', startedAt: instant(10), completedAt: instant(70) } as Step],
    events: [
      { type: 'step:complete', seq: 1, timestamp: instant(71), stepName: 'one', duration: 59 },
      { type: 'run:complete', seq: 2, timestamp: instant(502), duration: 498 },
    ] as unknown as StoredEvent[],
    logs: [],
  })
  expect(lines.map(({ text }) => text)).toEqual(['The run completed in 500 ms', 'one completed in 60 ms'])
})
