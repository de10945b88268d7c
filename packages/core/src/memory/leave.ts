import type { EventTemplate, Outcome } from '../port'
import { isEnded, type RunStatus } from '../base'
import { earliest } from './clock'
import { frozenCopy, type Memory } from './memory'
import type { RunEntry } from './run-entry'
import type { RunChange } from './run-table'
import { wokenAt } from './woken-at'

export interface Departure {
  readonly change: RunChange
  readonly events: readonly EventTemplate[]
}

/** How a run looks that its holder leaves; `cancelled` whatever the outcome when that was asked for. */
export function departure(memory: Memory, entry: RunEntry, outcome: Outcome): Departure {
  if (entry.record.cancelRequestedAt !== null) {
    return { change: asCancelled(memory, entry), events: outcome.eventsIfCancelled }
  }
  return { change: changeOf(memory, entry, outcome), events: outcome.events }
}

/** What goes with the lease. The slot stays only with a pending run that asked for it. */
export function leaveRunning({ clock }: Memory, { record }: RunEntry, status: RunStatus): RunChange {
  const keepsSlot = status === 'pending' && record.holdKeyWhileWaiting
  return {
    status,
    ownerId: null,
    claimToken: null,
    leaseUntil: null,
    waitingFor: null,
    concurrencySlot: keepsSlot ? record.concurrencySlot : null,
    finishedAt: isEnded(status) ? clock.now() : null,
  }
}

export function asCancelled(memory: Memory, entry: RunEntry): RunChange {
  return Object.assign(leaveRunning(memory, entry, 'cancelled'), { output: null })
}

function changeOf(memory: Memory, entry: RunEntry, outcome: Outcome): RunChange {
  switch (outcome.kind) {
    case 'complete': {
      const { output } = outcome
      return Object.assign(leaveRunning(memory, entry, 'completed'), { output, error: null, errorDetail: null })
    }
    case 'fail':
      return { ...leaveRunning(memory, entry, 'failed'), error: outcome.error, errorDetail: frozenCopy(outcome.detail) }
    case 'timeOut':
      return {
        ...leaveRunning(memory, entry, 'timed_out'),
        error: outcome.error,
        errorDetail: frozenCopy(outcome.detail),
      }
    case 'cancelled':
      return asCancelled(memory, entry)
    default:
      return Object.assign(leaveRunning(memory, entry, 'pending'), waitingChange(memory, entry, outcome))
  }
}

type WaitingOutcome = Extract<Outcome, { kind: 'retryLater' | 'suspend' | 'release' | 'park' }>

function waitingChange({ clock }: Memory, { record, steps, lastSignal }: RunEntry, outcome: WaitingOutcome): RunChange {
  const { deadlineAt, createdAt, attempt } = record
  switch (outcome.kind) {
    case 'retryLater':
      return {
        attempt: attempt + 1,
        waitingFor: frozenCopy({ kind: 'retry' }),
        availableAt: earliest([clock.in(outcome.delayMs), deadlineAt]),
        error: outcome.error,
        errorDetail: frozenCopy(outcome.detail),
      }
    case 'suspend': {
      const { wakesSeen, wakesWanted, restMs } = outcome
      const restUntil = restMs === 0 ? null : clock.in(restMs)
      const dueAt = earliest([...steps.waitingDueAt(outcome.steps), deadlineAt])
      const suspended = { createdAt, availableAt: dueAt, wakes: record.wakes, wakesWanted, restUntil }
      return {
        waitingFor: frozenCopy({ kind: 'steps', steps: Object.freeze([...outcome.steps]) }),
        availableAt:
          record.wakes === wakesSeen ? dueAt : lastSignal > wakesSeen ? createdAt : wokenAt(suspended, clock.now()),
        wakesWanted,
        restUntil,
      }
    }
    case 'release':
      return { availableAt: createdAt }
    case 'park':
      return { availableAt: null, waitingFor: frozenCopy({ kind: 'unpark', reason: outcome.reason }) }
  }
}
