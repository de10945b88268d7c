import { isEnded, type Outcome, type RunRecord, type RunStatus } from '@coji/durably-core'
import type { Draft } from './draft.ts'

/** How a run looks that its holder leaves; `cancelled` whatever the outcome when that was asked for. */
export function departure(draft: Draft, run: RunRecord, outcome: Outcome): Partial<RunRecord> {
  if (run.cancelRequestedAt !== null) return cancelled(draft, run)
  switch (outcome.kind) {
    case 'complete':
      return { ...left(draft, run, 'completed'), output: outcome.output, error: null, errorDetail: null }
    case 'fail':
      return { ...left(draft, run, 'failed'), error: outcome.error, errorDetail: outcome.detail }
    case 'timeOut':
      return { ...left(draft, run, 'timed_out'), error: outcome.error, errorDetail: outcome.detail }
    case 'cancelled':
      return cancelled(draft, run)
    default:
      return { ...left(draft, run, 'pending'), ...waiting(draft, run, outcome) }
  }
}

export function cancelled(draft: Draft, run: RunRecord): Partial<RunRecord> {
  return { ...left(draft, run, 'cancelled'), output: null }
}

/** What goes with the lease. The slot stays only with a pending run that asked for it. */
export function left(draft: Draft, run: RunRecord, status: RunStatus): Partial<RunRecord> {
  const keepsSlot = status === 'pending' && run.holdKeyWhileWaiting
  return {
    status,
    ownerId: null,
    claimToken: null,
    leaseUntil: null,
    waitingFor: null,
    concurrencySlot: keepsSlot ? run.concurrencySlot : null,
    finishedAt: isEnded(status) ? draft.now : null,
  }
}

type Waiting = Extract<Outcome, { kind: 'retryLater' | 'suspend' | 'release' | 'park' }>

function waiting(draft: Draft, run: RunRecord, outcome: Waiting): Partial<RunRecord> {
  switch (outcome.kind) {
    case 'retryLater':
      return {
        attempt: run.attempt + 1,
        waitingFor: { kind: 'retry' },
        availableAt: earliest([draft.in(outcome.delayMs), run.deadlineAt]),
        error: outcome.error,
        errorDetail: outcome.detail,
      }
    case 'suspend': {
      const hasMissedWake = run.wakes !== outcome.wakesSeen
      const waits = [...draft.steps(run.id).values()].filter(
        ({ status, name }) => status === 'waiting' && outcome.steps.includes(name),
      )
      const dueAt = earliest([...waits.map((row) => row.dueAt), run.deadlineAt])
      return {
        waitingFor: { kind: 'steps', steps: outcome.steps },
        availableAt: hasMissedWake ? run.createdAt : dueAt,
      }
    }
    case 'release':
      return { availableAt: run.createdAt }
    case 'park':
      return { availableAt: null, waitingFor: { kind: 'unpark', reason: outcome.reason } }
  }
}

function earliest(instants: readonly (string | null)[]): string | null {
  return instants.filter((instant) => instant !== null).sort()[0] ?? null
}
