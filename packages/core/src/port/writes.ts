import type { ErrorDetail, Json, RunStatus } from '../base'
import type { AuditNote } from './audit'
import type { EventTemplate, Instant, Lease, NewLog, Progress, RunRecord, StepKind, StepStatus } from './records'

/** A run on its way into the storage. */
export interface NewRun {
  /** A ULID made by the caller: the same run sent twice is created once. */
  readonly id: string
  readonly tenant: string
  readonly jobName: string
  readonly jobVersion: string | null
  readonly payload: Json | null
  readonly labels: Readonly<Record<string, string>>
  readonly idempotencyKey: string | null
  /** For the same key with a different payload: hand back the run that has the key, or refuse the whole list. */
  readonly onConflict: 'return' | 'reject'
  readonly concurrencyKey: string | null
  readonly concurrencyLimit: number
  readonly holdKeyWhileWaiting: boolean
  readonly priority: number
  /** When it may start: after a delay, or at an instant the user gave; one in the past is now. */
  readonly start: { readonly afterMs: number } | { readonly at: Instant }
  readonly timeoutMs: number | null
  readonly parentRunId: string | null
  readonly scheduleId: string | null
  readonly scheduledFor: Instant | null
  /** The W3C `traceparent` of what triggered it. */
  readonly traceParent?: string | null
  readonly events: readonly EventTemplate[]
}

/** A run that begins with completed steps of another one. */
export interface NewFork {
  readonly run: NewRun
  /** The run whose steps these are; without it nothing is created. */
  readonly originId: string
  /** Completed steps of it, each with the id that its copy gets. */
  readonly steps: readonly { readonly id: string; readonly copyId: string }[]
  readonly audit?: AuditNote
}

/** A run that is put off while more of its kind are triggered. */
export interface DebouncedRun {
  /** As it is when there is none to put off: due after `waitMs`. */
  readonly run: NewRun
  /** Of the job and the tenant. */
  readonly key: string
  /** It is due so long after the last trigger. */
  readonly waitMs: number
  /** And so long after it was created at the latest. */
  readonly maxWaitMs: number | null
}

/** A run that gets the entries of more triggers of its kind, as long as it has not begun and has room. */
export interface BatchedRun {
  /** As it is when there is none to join. Its payload is a list that has entries. */
  readonly run: NewRun
  /** Of the job and the tenant. */
  readonly key: string
  /** So many entries make it full: no more come to it, and it is due at once. */
  readonly max: number
  /** So many bytes of JSON are the most that a list may come to have. */
  readonly maxBytes: number
}

/** `created` is false when another run has the idempotency key; `run` is then that one. */
export interface EnqueueAnswer {
  readonly run: RunRecord
  readonly created: boolean
}

/** One step row, written over the row with the same `id`. Not more than one row of a name is anything but `failed`. */
export interface StepWrite {
  readonly id: string
  readonly name: string
  readonly index: number
  readonly kind: StepKind
  readonly status: StepStatus
  readonly attempt: number
  readonly output: Json | null
  readonly error: string | null
  readonly errorDetail: ErrorDetail | null
  readonly checkpoint: Json | null
  /** How long the body took; the storage subtracts it from its own time for `startedAt`. */
  readonly durationMs: number
  /** For a wait: when it ends by itself. Written once; a later write of the same row leaves it alone. */
  readonly due: { readonly inMs: number } | { readonly at: Instant } | null
  readonly waitName: string | null
  /**
   * A run to create with this row. The row's output becomes the JSON of its id, or of the run that has its key: that one
   * is then awaited by the child's `parentRunId` too.
   */
  readonly child: NewRun | null
}

/** The events of an execution that ends. */
export interface OutcomeEvents {
  readonly events: readonly EventTemplate[]
  /** Appended instead of `events` when the flag to cancel was set and the run becomes `cancelled`. */
  readonly eventsIfCancelled: readonly EventTemplate[]
}

/** How a run ends that failed or timed out. */
export interface Failing {
  readonly error: string
  readonly detail: ErrorDetail
  /** A run to create in the same write, unless the run becomes `cancelled`. It has no idempotency key. */
  readonly onFailure?: NewRun | null
}

/** How a holder leaves `running`. Each becomes `cancelled` instead, in the same write, when the flag is set. */
export type Outcome = OutcomeEvents &
  (
    | { readonly kind: 'complete'; readonly output: Json | null }
    | (Failing & { readonly kind: 'fail' })
    | (Failing & { readonly kind: 'timeOut' })
    | { readonly kind: 'cancelled' }
    /** `attempt + 1`, due after the delay (at the latest at the deadline). */
    | { readonly kind: 'retryLater'; readonly delayMs: number; readonly error: string; readonly detail: ErrorDetail }
    | Suspend
    /** Back to its place in the queue, not a crash. */
    | { readonly kind: 'release' }
    | { readonly kind: 'park'; readonly reason: string }
  )

/**
 * Due at the earliest `dueAt` of these waiting steps or the run's deadline, never when there is neither; at once when it
 * was woken, which `wakes` tells that is not `wakesSeen` any more. A waiting row of another name is one that the job no
 * longer asks for.
 *
 * Who waits for many children rests meanwhile, so that it does not look at all of them each time one ends: before
 * `wakes` has reached `wakesWanted`, the end of a child makes it due when `restMs` from now are over, not earlier. A
 * signal wakes it at once.
 */
export interface Suspend {
  readonly kind: 'suspend'
  readonly steps: readonly string[]
  readonly wakesSeen: number
  readonly wakesWanted: number
  readonly restMs: number
}

/** Everything to persist for one run, atomically, if the lease still holds. */
export interface RunCommit {
  readonly lease: Lease
  /** Counts the holder's commits under this lease from 1. The fence asks for `commitNo − 1` and sets `commitNo`. */
  readonly commitNo: number
  /** The lease is extended to this from now. */
  readonly leaseMs: number
  /** The run has got further: its `crashCount` starts anew. */
  readonly hasProgressed: boolean
  readonly currentStepIndex: number | null
  readonly progress: Progress | null
  readonly steps: readonly StepWrite[]
  /** Runs to create with the commit. None has an idempotency key. */
  readonly children: readonly NewRun[]
  readonly logs: readonly NewLog[]
  readonly events: readonly EventTemplate[]
  /** Positions of the signals that the steps of this commit used up. */
  readonly consumedSignals: readonly number[]
  readonly outcome: Outcome | null
}

/**
 * `kept: false` is a lost lease: nothing was written, and nothing under this lease ever will be. With `isBusy` nothing
 * was decided: somebody holds the run, the storage kept nobody else waiting for it, and the commit is to be sent again.
 */
export type CommitAnswer =
  | {
      readonly kept: true
      readonly status: RunStatus
      readonly seq: number
      readonly wakes: number
      readonly cancelRequested: boolean
      /** Ids for the steps with a `child`, in their order. */
      readonly children: readonly string[]
    }
  | { readonly kept: false; readonly isBusy?: boolean }
