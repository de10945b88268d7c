import { isEnded, type Outcome, type RunRecord, type RunStatus } from '@coji/durably-core/storage'
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
      const waits = [...draft.steps(run.id).values()].filter(
        ({ status, name }) => status === 'waiting' && outcome.steps.includes(name),
      )
      const dueAt = earliest([...waits.map((row) => row.dueAt), run.deadlineAt])
      const { steps, wakesSeen, wakesWanted, restMs } = outcome
      const restUntil = restMs === 0 ? null : draft.in(restMs)
      const suspended = { ...run, availableAt: dueAt, wakesWanted, restUntil }
      return {
        waitingFor: { kind: 'steps', steps },
        availableAt: run.wakes === wakesSeen ? dueAt : wokenAt(suspended, draft.now),
        wakesWanted,
        restUntil,
      }
    }
    case 'release':
      return { availableAt: run.createdAt }
    case 'park':
      return { availableAt: null, waitingFor: { kind: 'unpark', reason: outcome.reason } }
  }
}

/** When a suspended run is due that children have woken: after its rest, or at once if they were all it waits for. */
export function wokenAt({ createdAt, availableAt, wakes, wakesWanted, restUntil }: RunRecord, now: string): string {
  if (restUntil === null || restUntil <= now || wakes >= wakesWanted) return createdAt
  return earliest([availableAt, restUntil]) ?? restUntil
}

function earliest(instants: readonly (string | null)[]): string | null {
  return instants.filter((instant) => instant !== null).sort()[0] ?? null
}
