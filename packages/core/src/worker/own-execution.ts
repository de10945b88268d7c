import type { CommitLine } from '../commit'
import type { JobDefinition } from '../job'
import type { Done, Execution, ExecutionParams } from './execution'

export interface OwnExecutionParams extends Pick<ExecutionParams, 'engine' | 'leases' | 'run' | 'claimedAt'> {
  readonly line: CommitLine
  readonly onDone: (execution: Execution, done: Done) => void
}

/** One run in hand, which has not begun. */
export interface OwnExecution extends Execution {
  begin(): void
}

type CreateOwn = (params: OwnExecutionParams) => OwnExecution

const own = new WeakMap<JobDefinition, CreateOwn>()

/**
 * Runs of the job are executed so, not as those of jobs with steps are. Who makes such jobs brings it along: nobody else has
 * to download it.
 */
export function executeOwn(job: JobDefinition, create: CreateOwn): JobDefinition {
  own.set(job, create)
  return job
}

export function ownExecutionOf(job: JobDefinition | undefined): CreateOwn | undefined {
  return job === undefined ? undefined : own.get(job)
}
