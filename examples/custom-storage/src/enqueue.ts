import { keyConflict, type EnqueueAnswer, type NewRun, type RunRecord } from '@coji/durably-core/storage'
import type { Draft } from './draft.ts'

export function enqueue(draft: Draft, runs: readonly NewRun[]): EnqueueAnswer[] {
  return runs.map((run) => enqueueOne(draft, run, runs))
}

/** The same id sent twice is the same run; a key that is taken answers with the run that has it. */
export function enqueueOne(draft: Draft, run: NewRun, list: readonly NewRun[] = [run]): EnqueueAnswer {
  const sentBefore = draft.run(run.id)
  if (sentBefore !== undefined) return { run: sentBefore, created: true }
  const holder = draft.findByKey(run)
  if (holder === undefined) return { run: draft.insert(newRecord(draft, run)), created: true }
  if (run.onConflict === 'reject' && holder.payload !== run.payload) {
    // One that stands in the same list will not be stored either.
    throw keyConflict(run, list.find(({ id }) => id === holder.id) ?? holder)
  }
  return { run: holder, created: false }
}

function newRecord(draft: Draft, { start, onConflict: _conflict, events: _events, ...given }: NewRun): RunRecord {
  const { now } = draft
  const wanted = 'at' in start ? start.at : draft.in(start.afterMs)
  const isPast = 'at' in start && start.at < now
  const availableAt = isPast ? now : wanted
  return { ...UNTOUCHED, ...given, availableAt, createdAt: now, updatedAt: now }
}

const UNTOUCHED = {
  status: 'pending',
  concurrencySlot: null,
  waitingFor: null,
  currentStepIndex: 0,
  progress: null,
  output: null,
  error: null,
  errorDetail: null,
  version: 1,
  attempt: 1,
  attemptBase: 0,
  crashCount: 0,
  assignments: 0,
  ownerId: null,
  claimToken: null,
  leaseEpoch: 0,
  leaseUntil: null,
  leaderEpoch: null,
  commitNo: 0,
  wakes: 0,
  wakesWanted: 0,
  restUntil: null,
  alsoAwaitedBy: [],
  lastEventSequence: 0,
  cancelRequestedAt: null,
  deadlineAt: null,
  heartbeatAt: null,
  startedAt: null,
  finishedAt: null,
} as const
