import {
  afterOutcome,
  calledRun,
  isEnded,
  type CommitAnswer,
  type Lease,
  type NewRun,
  type Outcome,
  type RunChange,
  type RenewAnswer,
  type RunCommit,
  type RunRecord,
  type StepWrite,
} from '@coji/durably-core/storage'
import type { Draft } from './draft.ts'
import { enqueueOne } from './enqueue.ts'
import type { StepRow } from './state.ts'

export function commit(draft: Draft, commits: readonly RunCommit[]): CommitAnswer[] {
  return commits.map((one) => commitOne(draft, one))
}

export function renew(draft: Draft, leases: readonly Lease[], leaseMs: number): RenewAnswer[] {
  return leases.map((lease) => {
    const run = draft.run(lease.runId)
    if (run === undefined || !holds(run, lease)) return { kept: false }
    const { wakes, cancelRequestedAt } = draft.change(run, {
      leaseUntil: draft.in(leaseMs),
      heartbeatAt: draft.now,
    })
    return { kept: true, wakes, cancelRequested: cancelRequestedAt !== null }
  })
}

/** The fence: what makes a write on behalf of a run legitimate. */
function holds({ status, leaseEpoch, claimToken, leaderEpoch }: RunRecord, lease: Lease): boolean {
  const isSame = leaseEpoch === lease.epoch && claimToken === lease.token && leaderEpoch === lease.leaderEpoch
  return status === 'running' && isSame
}

/** The answer to this very commit was lost, and it comes again. */
function wasApplied({ leaseEpoch, claimToken, commitNo }: RunRecord, { lease, commitNo: no }: RunCommit): boolean {
  return leaseEpoch === lease.epoch && commitNo === no && (claimToken === null || claimToken === lease.token)
}

function commitOne(draft: Draft, one: RunCommit): CommitAnswer {
  const run = draft.run(one.lease.runId)
  if (run === undefined) return { kept: false }
  if (holds(run, one.lease) && run.commitNo === one.commitNo - 1) return answer(draft, apply(draft, run, one), one)
  return wasApplied(run, one) ? answer(draft, run, one) : { kept: false }
}

function apply(draft: Draft, run: RunRecord, one: RunCommit): RunRecord {
  for (const child of one.children) enqueueOne(draft, child)
  const called = run.cancelRequestedAt === null ? calledRun(one.outcome) : null
  if (called !== null) enqueueOne(draft, called)
  for (const step of one.steps) draft.putStep(toRow(draft, run, step))
  return draft.change(run, {
    commitNo: one.commitNo,
    heartbeatAt: draft.now,
    currentStepIndex: one.currentStepIndex ?? run.currentStepIndex,
    progress: one.progress ?? run.progress,
    // What got somewhere ends a streak of crashes.
    crashCount: one.hasProgressed ? 0 : run.crashCount,
    ...(one.outcome === null ? { leaseUntil: draft.in(one.leaseMs) } : leave(draft, run, one.outcome)),
  })
}

/** This storage has neither events nor signals. */
function leave(draft: Draft, run: RunRecord, outcome: Outcome): RunChange {
  const rows = [...draft.steps(run.id).values()]
  const waitsEnd = (names: readonly string[]) =>
    rows.filter(({ status, name }) => status === 'waiting' && names.includes(name)).map(({ dueAt }) => dueAt)
  return afterOutcome(run, outcome, { time: draft, waitsEnd, lastSignal: 0 }).change
}

function toRow(draft: Draft, run: RunRecord, step: StepWrite): StepRow {
  const { child, due, durationMs, ...given } = step
  const before = draft.steps(run.id).get(step.id)
  const dueAt = due === null ? null : 'at' in due ? due.at : draft.in(due.inMs)
  const hasEnded = step.status === 'completed' || step.status === 'failed'
  return {
    ...given,
    runId: run.id,
    leaseEpoch: run.leaseEpoch,
    output: child === null ? step.output : JSON.stringify(bear(draft, child)),
    // When a wait ends is written once and never computed again.
    dueAt: before?.dueAt ?? dueAt,
    startedAt: draft.in(-durationMs),
    completedAt: hasEnded ? draft.now : null,
  }
}

/** The child's id, or that of the run that has its key, which is then awaited by its parent too. */
function bear(draft: Draft, child: NewRun): string {
  const { run, created } = enqueueOne(draft, child)
  const { parentRunId } = child
  if (created || parentRunId === null) return run.id
  if (run.parentRunId === parentRunId || run.alsoAwaitedBy.includes(parentRunId)) return run.id
  const isStillThere = (id: string) => !isEnded(draft.run(id)?.status ?? 'cancelled')
  const before = isEnded(run.status) ? run.alsoAwaitedBy.filter(isStillThere) : run.alsoAwaitedBy
  return draft.change(run, { alsoAwaitedBy: [...before, parentRunId] }).id
}

function answer(draft: Draft, run: RunRecord, { steps }: RunCommit): CommitAnswer {
  const rows = draft.steps(run.id)
  const children = steps
    .filter(({ child }) => child !== null)
    .map(({ id }) => String(JSON.parse(rows.get(id)?.output ?? 'null')))
  const { status, lastEventSequence: seq, wakes, cancelRequestedAt } = run
  return { kept: true, status, seq, wakes, cancelRequested: cancelRequestedAt !== null, children }
}
