import { describeFailure, errorFrom, isRejection } from '../base'
import type { EventInput } from '../job'
import type { StepStatus } from '../port'
import { commitRow, idsOf, NO_ATTEMPT, type RowResult, type CallRow } from './row'
import type { RecordedStep, StepScope } from './scope'

interface FailureParams {
  readonly consumedSignals?: RowResult['consumedSignals'] | undefined
  readonly error: unknown
  /** It may not be tried again within the attempt. */
  readonly isFinal: boolean
}

/** Stores the failure, then throws what every later pass will throw. */
export async function recordFailure(row: CallRow, failure: FailureParams): Promise<never> {
  const { error, isFinal, consumedSignals = [] } = failure
  const { scope, name } = row
  const { message, detail } = describeFailure(error, name)
  const event: EventInput = { type: 'step:fail', ...idsOf(row), error: message }
  const { row: failed, seq } = await commitRow(row, 'failed', {
    ...{ error: message, errorDetail: detail },
    ...{ event, consumedSignals },
  })
  scope.recorded.delete(name)
  keepFailure(scope, name, { failed, isFinal })
  countFailure(scope, name)
  scope.engine.events.emit(event, seq)
  throw failureOf(scope, name, failed)
}

/** Writes the row of a call; what the storage will never take is a failure of its step. */
export async function commitOrFail(row: CallRow, status: StepStatus, result: RowResult = {}) {
  try {
    return await commitRow(row, status, result)
  } catch (error) {
    if (!isRejection(error)) throw error
    return recordFailure(row, { error, isFinal: false, consumedSignals: result.consumedSignals })
  }
}

/** Throws when the step has failed before in this attempt of the run, and has no row to go on in. */
export function replayFailure(scope: StepScope, name: string, isFinal: boolean): void {
  const failed = scope.recorded.has(name) ? undefined : scope.failed.get(name)
  if (failed?.attempt !== scope.run.attempt) return
  keepFailure(scope, name, { failed, isFinal })
  throw failureOf(scope, name, failed)
}

/** A plugin may run the job again: then the step is tried anew, from what it saved, unless it may run only once. */
function keepFailure(
  scope: StepScope,
  name: string,
  { failed, isFinal }: { readonly failed: RecordedStep; readonly isFinal: boolean },
): void {
  scope.failed.set(name, isFinal ? failed : { ...failed, attempt: NO_ATTEMPT })
}

export function countFailure({ failures, failuresOfAttempt }: StepScope, name: string): void {
  for (const counts of [failures, failuresOfAttempt]) counts.set(name, (counts.get(name) ?? 0) + 1)
}

function failureOf(scope: StepScope, name: string, { error, errorDetail }: RecordedStep): Error {
  const failure = errorFrom(name, error ?? '', errorDetail)
  // To tell which step a run failed in.
  scope.stepOfError.set(failure, name)
  return failure
}
