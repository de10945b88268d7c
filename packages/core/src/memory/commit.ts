import {
  afterOutcome,
  calledRun,
  type CommitAnswer,
  type NewRun,
  type Outcome,
  type RunChange,
  type RunCommit,
  type RunRecord,
  type StepWrite,
} from '../port'
import { checkConflicts, enqueueOne } from './enqueue'
import { mayCommit, wasApplied } from './fence'
import { frozenCopy, type Memory, ownChange } from './memory'
import type { RunEntry } from './run-entry'

const LOST = Object.freeze({ kept: false })

/** All that can be refused is refused before the first commit is applied. */
export function commit(memory: Memory, commits: readonly RunCommit[]): CommitAnswer[] {
  for (const one of commits) check(memory, one)
  return commits.map((one) => commitOne(memory, one))
}

function check(memory: Memory, one: RunCommit): void {
  const entry = memory.table.find(one.lease.runId)
  if (one.steps.length === 0 || entry === undefined || !mayCommit(memory, entry, one)) return
  entry.steps.check(one.steps)
  checkConflicts(
    memory,
    one.steps.flatMap(({ child }) => child ?? []),
  )
}

function commitOne(memory: Memory, one: RunCommit): CommitAnswer {
  const entry = memory.table.find(one.lease.runId)
  if (entry === undefined) return LOST
  if (mayCommit(memory, entry, one)) return kept(apply(memory, entry, one), childIds(entry, one.steps))
  return wasApplied(entry, one) ? kept(entry.record, childIds(entry, one.steps)) : LOST
}

function apply(memory: Memory, entry: RunEntry, one: RunCommit): RunRecord {
  const { record } = entry
  for (const step of one.steps) writeStep(memory, entry, step)
  for (const child of one.children) enqueueOne(memory, child)
  for (const log of one.logs) entry.addLog(frozenCopy({ ...log, runId: record.id }))
  if (one.consumedSignals.length > 0) {
    entry.signals = entry.signals.filter(({ position }) => !one.consumedSignals.includes(position))
  }
  const onFailure = record.cancelRequestedAt === null ? calledRun(one.outcome) : null
  if (onFailure !== null) enqueueOne(memory, onFailure)
  const left = one.outcome === null ? stay(memory, entry, one) : leave(memory, entry, one.outcome)
  const change = Object.assign(progressOf(memory, record, one), left.change)
  return memory.table.change(entry, change, together(one.events, left.events))
}

function leave({ clock }: Memory, { record, steps, lastSignal }: RunEntry, outcome: Outcome) {
  const waitsEnd = (names: readonly string[]) => steps.waitingDueAt(names)
  const { change, events } = afterOutcome(record, outcome, { time: clock, waitsEnd, lastSignal })
  return { change: ownChange(change), events }
}

function together<T>(some: readonly T[], more: readonly T[]): readonly T[] {
  return some.length === 0 ? more : [...some, ...more]
}

function writeStep(memory: Memory, entry: RunEntry, step: StepWrite): void {
  const { id: runId, leaseEpoch } = entry.record
  const output = step.child === null ? step.output : JSON.stringify(bear(memory, step.child))
  entry.steps.write(step, output, { runId, leaseEpoch, clock: memory.clock })
}

/** The child's id, or that of the run that has its key. */
function bear(memory: Memory, child: NewRun): string {
  const { entry, created } = enqueueOne(memory, child)
  if (!created && child.parentRunId !== null) memory.table.awaitAlso(entry, child.parentRunId)
  return entry.record.id
}

function progressOf({ clock }: Memory, record: RunRecord, one: RunCommit): RunChange {
  return {
    commitNo: one.commitNo,
    heartbeatAt: clock.now(),
    currentStepIndex: one.currentStepIndex ?? record.currentStepIndex,
    progress: one.progress === null ? record.progress : frozenCopy(one.progress),
    crashCount: one.hasProgressed ? 0 : record.crashCount,
  }
}

function stay({ clock }: Memory, entry: RunEntry, { leaseMs }: RunCommit) {
  const leaseUntil = clock.in(leaseMs)
  if (entry.lease !== null) entry.lease = { ...entry.lease, until: leaseUntil }
  return { change: { leaseUntil }, events: [] }
}

const NO_CHILDREN: readonly string[] = Object.freeze([])

function childIds(entry: RunEntry, steps: readonly StepWrite[]): readonly string[] {
  if (steps.length === 0) return NO_CHILDREN
  return steps.flatMap(({ id, child }) => {
    if (child === null) return []
    const output = entry.steps.get(id)?.output ?? null
    return [output === null ? child.id : String(JSON.parse(output))]
  })
}

function kept(
  { status, lastEventSequence, wakes, cancelRequestedAt }: RunRecord,
  children: readonly string[],
): CommitAnswer {
  return { kept: true, status, seq: lastEventSequence, wakes, cancelRequested: cancelRequestedAt !== null, children }
}
