import { expect } from 'vitest'
import { reportSuite } from '../../../test/report'
import type { InterruptedImport } from './interrupted-import'
import { checkSampleImport, checkWrittenOrders, PARTS } from './sample'

/** Demands of each interrupted import what must always hold, and counts the rest. */
export function createTally(suite: string) {
  const verdicts: InterruptedImport['verdict'][] = []
  const sum = (numbers: readonly number[]) => numbers.reduce((all, each) => all + each, 0)
  return {
    add({ moment, run, verdict, complaints }: InterruptedImport): void {
      expect(checkSampleImport(run)).toEqual([])
      expect(checkWrittenOrders(run)).toEqual([])
      expect(verdict.faults).toEqual([])
      expect(verdict.parts).toBe(PARTS)
      expect(complaints).toEqual([])
      if (moment.kind === 'part') {
        expect(verdict.skipped).toBeGreaterThanOrEqual(moment.part - 1)
        expect(verdict.skipped).toBeLessThan(PARTS)
      }
      verdicts.push(verdict)
    },
    report(): void {
      reportSuite({
        suite,
        kills: verdicts.length,
        midway: verdicts.filter(({ skipped, parts }) => skipped > 0 && skipped < parts).length,
        resumed: verdicts.filter(({ skipped, parts }) => skipped < parts).length,
        'skipped steps': sum(verdicts.map(({ skipped }) => skipped)),
        'steps run again': sum(verdicts.map(({ ranAgain }) => ranAgain)),
      })
    },
  }
}
