import {
  firstDue,
  keyConflict,
  newRecord,
  type EnqueueAnswer,
  type NewRun,
  type RunRecord,
} from '@coji/durably-core/storage'
import type { Draft } from './draft.ts'

export function enqueue(draft: Draft, runs: readonly NewRun[]): EnqueueAnswer[] {
  return runs.map((run) => enqueueOne(draft, run, runs))
}

/** The same id sent twice is the same run; a key that is taken answers with the run that has it. */
export function enqueueOne(draft: Draft, run: NewRun, list: readonly NewRun[] = [run]): EnqueueAnswer {
  const sentBefore = draft.run(run.id)
  if (sentBefore !== undefined) return { run: sentBefore, created: true }
  const holder = draft.findByKey(run)
  if (holder === undefined) return { run: draft.insert(toRecord(draft, run)), created: true }
  if (run.onConflict === 'reject' && holder.payload !== run.payload) {
    // One that stands in the same list will not be stored either.
    throw keyConflict(run, list.find(({ id }) => id === holder.id) ?? holder)
  }
  return { run: holder, created: false }
}

/** This storage keeps no events. */
function toRecord(draft: Draft, run: NewRun): RunRecord {
  const record = newRecord(run, { createdAt: draft.now, availableAt: firstDue(run, draft), labels: run.labels })
  return { ...record, lastEventSequence: 0 }
}
