import { isEnded, type RunStatus } from '../base'
import type { Recovery } from './crashes'
import type { EventTemplate, Instant, RunRecord } from './records'
import type { RunCommand } from './storage'
import type { NewRun, Outcome, RunCommit } from './writes'

/**
 * What a transition does to a run, beside `version` and `updatedAt`, which every write moves. The guards are in
 * `LIFECYCLE`; storages on SQL say the same in statements.
 */
export type RunChange = Partial<
  Omit<RunRecord, 'id' | 'tenant' | 'jobName' | 'version' | 'updatedAt' | 'lastEventSequence'>
>

/** The storage's own time: one instant for all of a write. */
export interface WriteTime {
  /** The instant this many milliseconds from now; 0 is now. */
  in(ms: number): Instant
}

/** What a storage knows of a run that its holder leaves. */
export interface OutcomeTerms {
  readonly time: WriteTime
  /** When the waiting steps of these names end by themselves, of those that do. */
  waitsEnd(steps: readonly string[]): Iterable<Instant | null>
  /** The `wakes` that the last signal left behind; 0 where there are none. */
  readonly lastSignal: number
}

/** How a run looks that its holder leaves; `cancelled` whatever the outcome when that was asked for. */
export function afterOutcome(
  run: RunRecord,
  outcome: Outcome,
  terms: OutcomeTerms,
): { readonly change: RunChange; readonly events: readonly EventTemplate[] } {
  if (run.cancelRequestedAt !== null) return { change: cancelled(run, terms.time), events: outcome.eventsIfCancelled }
  return { change: changeOf(run, outcome, terms), events: outcome.events }
}

/** The run that a failure creates, unless the run that failed becomes `cancelled`. */
export function calledRun(outcome: Outcome | null): NewRun | null {
  return outcome?.kind === 'fail' || outcome?.kind === 'timeOut' ? (outcome.onFailure ?? null) : null
}

/** Whether a commit has runs to create: with its steps, beside them, or because the run failed. */
export function createsRuns({ children, steps, outcome }: RunCommit): boolean {
  return children.length > 0 || calledRun(outcome) !== null || steps.some(({ child }) => child !== null)
}

function changeOf(run: RunRecord, outcome: Outcome, terms: OutcomeTerms): RunChange {
  const { time } = terms
  switch (outcome.kind) {
    case 'complete':
      return Object.assign(left(run, 'completed', time), { output: outcome.output, error: null, errorDetail: null })
    case 'fail':
      return { ...left(run, 'failed', time), error: outcome.error, errorDetail: outcome.detail }
    case 'timeOut':
      return { ...left(run, 'timed_out', time), error: outcome.error, errorDetail: outcome.detail }
    case 'cancelled':
      return cancelled(run, time)
    default:
      return Object.assign(left(run, 'pending', time), waiting(run, outcome, terms))
  }
}

type WaitingOutcome = Extract<Outcome, { kind: 'retryLater' | 'suspend' | 'release' | 'park' }>

function waiting(run: RunRecord, outcome: WaitingOutcome, terms: OutcomeTerms): RunChange {
  switch (outcome.kind) {
    case 'retryLater':
      return {
        attempt: run.attempt + 1,
        waitingFor: { kind: 'retry' },
        availableAt: earliest([terms.time.in(outcome.delayMs), run.deadlineAt]),
        error: outcome.error,
        errorDetail: outcome.detail,
      }
    case 'suspend':
      return suspended(run, outcome, terms)
    case 'release':
      return { availableAt: run.createdAt }
    case 'park':
      return afterPark(outcome.reason)
  }
}

function suspended(
  { wakes, createdAt, deadlineAt }: RunRecord,
  { steps, wakesSeen, wakesWanted, restMs }: Extract<Outcome, { kind: 'suspend' }>,
  { time, waitsEnd, lastSignal }: OutcomeTerms,
): RunChange {
  const restUntil = restMs === 0 ? null : time.in(restMs)
  const dueAt = earliest([...waitsEnd(steps), deadlineAt])
  const woken = () => wokenAt({ createdAt, availableAt: dueAt, wakes, wakesWanted, restUntil }, time.in(0))
  return {
    waitingFor: { kind: 'steps', steps: [...steps] },
    availableAt: wakes === wakesSeen ? dueAt : lastSignal > wakesSeen ? createdAt : woken(),
    wakesWanted,
    restUntil,
  }
}

/** What goes with the lease. The slot stays only with a pending run that asked for it. */
function left(run: RunRecord, status: RunStatus, time: WriteTime) {
  const keepsSlot = status === 'pending' && run.holdKeyWhileWaiting
  return {
    status,
    ownerId: null,
    claimToken: null,
    leaseUntil: null,
    waitingFor: null,
    concurrencySlot: keepsSlot ? run.concurrencySlot : null,
    finishedAt: isEnded(status) ? time.in(0) : null,
  }
}

function cancelled(run: RunRecord, time: WriteTime): RunChange {
  return Object.assign(left(run, 'cancelled', time), { output: null })
}

/** A run whose worker is gone; `recoveryOf` says what becomes of it. The higher epoch locks the old holder out. */
export function afterRecovery(run: RunRecord, recovery: Recovery, time: WriteTime): RunChange {
  const { status, crashCount, delayMs, failure } = recovery
  const counted = { crashCount, leaseEpoch: run.leaseEpoch + 1 }
  if (status === 'cancelled') return { ...cancelled(run, time), ...counted }
  const change = { ...left(run, status, time), ...counted }
  if (failure !== null) return { ...change, error: failure.error, errorDetail: failure.detail }
  return { ...change, availableAt: delayMs === 0 ? run.createdAt : time.in(delayMs) }
}

/** A leader has found a worker for it. */
export function afterAssign(
  { assignments }: RunRecord,
  {
    workerId,
    leaderEpoch,
    slot,
  }: { readonly workerId: string; readonly leaderEpoch: number; readonly slot: number | null },
  time: WriteTime,
): RunChange {
  return {
    status: 'assigned',
    assignedWorkerId: workerId,
    assignedAt: time.in(0),
    assignments: assignments + 1,
    leaderEpoch,
    concurrencySlot: slot,
    waitingFor: null,
  }
}

/** Its worker did not start it, and gives back what it has taken for it. A slot that the run has kept stays. */
export function afterOrphan({ holdKeyWhileWaiting, startedAt, concurrencySlot }: RunRecord): RunChange {
  return {
    status: 'orphaned',
    concurrencySlot: holdKeyWhileWaiting && startedAt !== null ? concurrencySlot : null,
  }
}

/** There is nobody who could assign it again. */
export function afterFree(): RunChange {
  return { status: 'pending' }
}

/** A waiting run that is cancelled. */
export function afterCancel(run: RunRecord, time: WriteTime): RunChange {
  return { ...cancelled(run, time), ...afterCancelRequest(run, time) }
}

/** A running one that is to be: its holder hears of it. */
export function afterCancelRequest({ cancelRequestedAt }: RunRecord, time: WriteTime): RunChange {
  return { cancelRequestedAt: cancelRequestedAt ?? time.in(0) }
}

/** By hand. The rows of steps that wait are removed with it. */
export function afterRetry({ attempt, leaseEpoch, createdAt }: RunRecord): RunChange {
  return {
    status: 'pending',
    waitingFor: null,
    ownerId: null,
    claimToken: null,
    leaseUntil: null,
    concurrencySlot: null,
    output: null,
    error: null,
    errorDetail: null,
    crashCount: 0,
    cancelRequestedAt: null,
    deadlineAt: null,
    startedAt: null,
    finishedAt: null,
    attempt: attempt + 1,
    attemptBase: attempt,
    leaseEpoch: leaseEpoch + 1,
    availableAt: createdAt,
  }
}

/** Parked, whether it was running or waiting. */
export function afterPark(reason: string): RunChange {
  return { availableAt: null, waitingFor: { kind: 'unpark', reason } }
}

/** As it was before it was parked. */
export function afterUnpark({ createdAt }: RunRecord): RunChange {
  return { availableAt: createdAt, waitingFor: null }
}

/** A parked run that an operator gives up. */
export function afterFailParked(
  run: RunRecord,
  { error, detail }: Extract<RunCommand, { kind: 'failParked' }>,
  time: WriteTime,
): RunChange {
  return { ...left(run, 'failed', time), error, errorDetail: detail }
}

/** When a suspended run is due that children have woken: when its rest is over, or at once if they were all it waits for. */
export function wokenAt(
  {
    createdAt,
    availableAt,
    wakes,
    wakesWanted,
    restUntil,
  }: Pick<RunRecord, 'createdAt' | 'availableAt' | 'wakes' | 'wakesWanted' | 'restUntil'>,
  now: Instant,
): Instant {
  if (restUntil === null || restUntil <= now || wakes >= wakesWanted) return createdAt
  return earliest([availableAt, restUntil]) ?? restUntil
}

/** The first of several instants, leaving out what is not set. */
function earliest(instants: Iterable<Instant | null>): Instant | null {
  let first: Instant | null = null
  for (const instant of instants) {
    if (instant !== null && (first === null || instant < first)) first = instant
  }
  return first
}
