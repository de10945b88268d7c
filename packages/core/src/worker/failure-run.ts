import { decodeValue, encodeValue, type ErrorDetail } from '../base'
import { newRunOfEncoded } from '../client'
import type { Engine } from '../engine'
import type { FailedRun, JobDeclaration } from '../job'
import type { NewRun, RunRecord } from '../port'

interface Failure {
  readonly run: RunRecord
  readonly status: FailedRun['status']
  readonly error: string
  readonly detail: ErrorDetail
}

/** A run of the job that a failure calls, to be created in the commit that ends the run. */
export function newFailureRun(
  engine: Engine,
  handler: JobDeclaration,
  { run, status, error, detail }: Failure,
): NewRun {
  const { own: _own, ...errorDetail } = detail
  const { id: runId, jobName, jobVersion, attempt, tenant, labels } = run
  const failed: FailedRun = { runId, jobName, jobVersion, status, error, errorDetail, attempt, tenant, labels }
  const job = engine.jobs.get(handler.name) ?? handler
  const payload = encodeValue(failed, `The payload of job "${job.name}"`)
  return {
    ...newRunOfEncoded({ engine, job, payload, options: { tenant } }),
    parentRunId: runId,
    traceParent: run.traceParent ?? null,
  }
}

export function announceFailureRun({ events }: Engine, { id: runId, jobName, payload }: NewRun): void {
  events.emit({ type: 'run:trigger', runId, jobName, payload: decodeValue(payload) })
}
