import type { CommitAnswer, RunCommit, RunStatus, StepWrite } from '@coji/durably-core'
import type { RunName, StepName } from './commit-columns'
import type { Rows } from './drivers/hooks'
import { outcomeValues, type OutcomeName } from './outcomes'
import { toJson } from './rows'
import type { SqlValue } from './statement'

/** The values of a step row. */
export function stepValues(step: StepWrite): Record<StepName, SqlValue> {
  const { id, name, index, kind, status, attempt, output, error, checkpoint, waitName, due } = step
  return {
    ...{ stepId: id, name, index, kind, status, attempt, output, error, checkpoint, waitName },
    errorDetail: toJson(step.errorDetail),
    dueAt: due !== null && 'at' in due ? due.at : null,
    dueInMs: due !== null && 'inMs' in due ? due.inMs : null,
    minusDurationMs: -step.durationMs,
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
