import type { ErrorDetail, Json, RunStatus } from '../base'

/** An instant as `2026-01-31T09:00:00.000Z`: fixed width, so that text order is time order. */
export type Instant = string

/** What makes a write on behalf of a run legitimate. Epoch and token are new at each claim. */
export interface Lease {
  readonly runId: string
  readonly epoch: number
  readonly token: string
  readonly leaderEpoch: number | null
}

/** How far a run is, in units of its own. */
export interface Progress {
  readonly current: number
  readonly total?: number
  readonly message?: string
}

/** Why a pending run is not simply waiting for its turn. */
export type WaitingFor =
  | { readonly kind: 'retry' }
  | { readonly kind: 'steps'; readonly steps: readonly string[] }
  | { readonly kind: 'unpark'; readonly reason: string }

/** A run as a storage has it. */
export interface RunRecord {
  readonly id: string
  readonly tenant: string
  readonly jobName: string
  readonly jobVersion: string | null
  readonly payload: Json | null
  readonly status: RunStatus
  readonly labels: Readonly<Record<string, string>>
  readonly idempotencyKey: string | null
  readonly concurrencyKey: string | null
  readonly concurrencyLimit: number
  /** The slot held, 0 … limit−1, unique per (tenant, key). */
  readonly concurrencySlot: number | null
  readonly holdKeyWhileWaiting: boolean
  readonly priority: number
  /** When the run may be claimed; `null` while it waits for something without a time. */
  readonly availableAt: Instant | null
  readonly waitingFor: WaitingFor | null
  readonly currentStepIndex: number
  readonly progress: Progress | null
  readonly output: Json | null
  readonly error: string | null
  readonly errorDetail: ErrorDetail | null
  readonly version: number
  /** Executions ended by the job's own errors, plus the current one. */
  readonly attempt: number
  /** The attempt before the one a retry by hand began with: `maxAttempts` counts from here. */
  readonly attemptBase: number
  /** Holders lost in a row without progress between them, as far as they count: see `recoveryOf`. */
  readonly crashCount: number
  readonly assignments: number
  /** Of an assigned run, and who had it last of one that was. */
  readonly assignedWorkerId?: string | null
  readonly assignedAt?: Instant | null
  readonly ownerId: string | null
  readonly claimToken: string | null
  readonly leaseEpoch: number
  readonly leaseUntil: Instant | null
  readonly leaderEpoch: number | null
  /** Commits applied under the current (or last) lease. */
  readonly commitNo: number
  /** Signals sent and children ended so far. */
  readonly wakes: number
  /** As the last suspension said: from how many `wakes` on a child's end makes the run due at once. */
  readonly wakesWanted: number
  /** Before that, a child's end makes it due at this instant, or at once where it is `null` or over. */
  readonly restUntil: Instant | null
  readonly lastEventSequence: number
  readonly cancelRequestedAt: Instant | null
  readonly timeoutMs: number | null
  readonly deadlineAt: Instant | null
  readonly parentRunId: string | null
  /** The run whose steps this one began with. */
  readonly forkedFrom?: string | null
  /** Runs that asked for this one by its idempotency key, and wait for it as its parent does. */
  readonly alsoAwaitedBy: readonly string[]
  readonly scheduleId: string | null
  readonly scheduledFor: Instant | null
  /** Under which name its earlier logs are in the archive. */
  readonly logRef?: string | null
  /** The W3C `traceparent` of what triggered it. */
  readonly traceParent?: string | null
  readonly heartbeatAt: Instant | null
  readonly createdAt: Instant
  readonly updatedAt: Instant
  readonly startedAt: Instant | null
  readonly finishedAt: Instant | null
}

/** What made the step. */
export type StepKind =
  | 'run'
  | 'transaction'
  | 'stream'
  | 'sleep'
  | 'signal'
  | 'child'
  | 'trigger'
  | 'triggerAll'
  | 'waitAll'

/** `started`: a body that may run only once, or one that saved a checkpoint. `waiting`: a wait in progress. */
export type StepStatus = 'completed' | 'failed' | 'started' | 'waiting'

/** A step as a storage has it. */
export interface StepRecord {
  readonly id: string
  readonly runId: string
  readonly name: string
  readonly index: number
  readonly kind: StepKind
  readonly status: StepStatus
  readonly attempt: number
  readonly output: Json | null
  readonly error: string | null
  readonly errorDetail: ErrorDetail | null
  readonly checkpoint: Json | null
  readonly waitName: string | null
  readonly dueAt: Instant | null
  /** Whether `dueAt` has come, by the clock of the storage. */
  readonly isDue: boolean
  readonly leaseEpoch: number
  readonly startedAt: Instant
  readonly completedAt: Instant | null
}

/** A log line on its way into the storage. */
export interface NewLog {
  readonly id: string
  readonly stepName: string | null
  readonly level: 'info' | 'warn' | 'error'
  readonly message: string
  readonly data: Json | null
  /** When the job wrote it: the worker's time, for people. */
  readonly timestamp: Instant
}

/** A log line as a storage has it. */
export interface LogRecord extends NewLog {
  readonly runId: string
}

/** An event as the engine hands it over; the storage adds run, number and time. */
export interface EventTemplate {
  readonly type: string
  readonly payload: Json
}

/** An event as a storage has it. */
export interface EventRecord {
  readonly runId: string
  readonly seq: number
  readonly type: string
  readonly payload: Json
  readonly createdAt: Instant
}

/** A signal that was not used up yet. */
export interface SignalRecord {
  readonly runId: string
  /** The run's `wakes` after this signal: the order of arrival. */
  readonly position: number
  readonly name: string
  readonly payload: Json | null
  readonly createdAt: Instant
}

/** Limits a call to one tenant. */
export interface Scope {
  readonly tenant?: string
}
