import type { CommitAnswer, RunCommit, RunStatus, StepWrite } from '@coji/durably-core/storage'
import type { RunName, StepName } from './commit-columns'
import type { Rows } from '../dialect'
import { type OutcomeName, outcomeValues } from './outcomes'
import { type SqlValue, toJson } from '../statement'

// Spreads would make objects of so many properties slow ones, of kilobytes each.

/** The values of a step row. */
export function stepValues(step: StepWrite): Record<StepName, SqlValue> {
  const { due } = step
  return {
    stepId: step.id,
    name: step.name,
    index: step.index,
    kind: step.kind,
    status: step.status,
    attempt: step.attempt,
    output: step.output,
    error: step.error,
    errorDetail: toJson(step.errorDetail),
    checkpoint: step.checkpoint,
    waitName: step.waitName,
    dueAt: due !== null && 'at' in due ? due.at : null,
    dueInMs: due !== null && 'inMs' in due ? due.inMs : null,
    minusDurationMs: -step.durationMs,
  }
}

/** The values of the change on a run that its holder keeps. */
export function keepValues(commit: RunCommit): Record<RunName, SqlValue> {
  const eventCount = commit.events.length
  return {
    leaseMs: commit.leaseMs,
    currentStepIndex: commit.currentStepIndex,
    progress: toJson(commit.progress),
    hasProgressed: commit.hasProgressed ? 1 : 0,
    eventCount,
    cancelledEventCount: eventCount,
  }
}

/** The values of the change on the run itself. */
export function runValues(commit: RunCommit): Record<RunName | OutcomeName, SqlValue> {
  const { outcome, events } = commit
  return {
    leaseMs: commit.leaseMs,
    currentStepIndex: commit.currentStepIndex,
    progress: toJson(commit.progress),
    hasProgressed: commit.hasProgressed ? 1 : 0,
    eventCount: events.length + (outcome?.events.length ?? 0),
    cancelledEventCount: events.length + (outcome?.eventsIfCancelled.length ?? 0),
    ...outcomeValues(outcome),
  }
}

/** The answer to a commit, from the row of its run as it is afterwards. */
export function kept(row: Rows[number], children: readonly string[]): CommitAnswer {
  return {
    kept: true,
    status: row['status'] as RunStatus,
    seq: row['last_event_sequence'] as number,
    wakes: row['wakes'] as number,
    cancelRequested: row['cancel_requested_at'] !== null,
    children,
  }
}
