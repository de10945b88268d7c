import type { Run } from '@coji/durably'
import type { AgentInput } from './agent/declaration'
import type { RunView, Session } from './contract'
import { isForSomebody } from './step-names'

/** A run as the page sees it. One that was begun and rests, or is between two workers, is running. */
export function viewRun(run: Run): RunView {
  const { session_id, message } = run.payload as AgentInput
  return {
    run_id: run.id,
    session_id,
    status: statusOf(run),
    isWaiting: isWaiting(run),
    isCancelRequested: run.cancelRequestedAt !== null,
    message,
    error: run.error,
    tries: run.attempt + run.crashCount,
    created_at: run.createdAt,
    started_at: run.startedAt,
    finished_at: run.finishedAt,
  }
}

type Now = Pick<Run, 'status' | 'startedAt' | 'waitingFor'>

function statusOf({ status, startedAt }: Now): RunView['status'] {
  switch (status) {
    case 'completed':
    case 'cancelled':
    case 'failed':
    case 'running':
      return status
    case 'timed_out':
      return 'failed'
    default:
      return startedAt === null ? 'queued' : 'running'
  }
}

function isWaiting({ status, waitingFor }: Now): boolean {
  return status === 'pending' && isForSomebody(waitingFor)
}

export function stateOf(run: Now | null): Session['state'] {
  if (run === null) return 'idle'
  return isWaiting(run) ? 'waiting' : statusOf(run)
}
