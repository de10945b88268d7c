import type { EventRecord, EventTemplate, LogRecord, RunRecord, Scope, SignalRecord } from './records'
import type { Json, RunStatus } from '../base'
import type { AuditNote } from './audit'
import type { ClaimParams } from './storage'
import type { BatchedRun, CommitAnswer, DebouncedRun, EnqueueAnswer, NewFork, NewRun, RunCommit } from './writes'

/** The optional groups by name. */
export type Capability =
  | 'events'
  | 'logs'
  | 'signals'
  | 'transaction'
  | 'watch'
  | 'limits'
  | 'forks'
  | 'debounce'
  | 'archiving'
  | 'audit'
  | 'settings'
  | 'statistics'
  | 'cluster'

/** What is new of one run. */
export interface EventTail {
  readonly runId: string
  readonly status: RunStatus
  readonly lastSeq: number
  readonly events: readonly EventRecord[]
}

/** The history of runs. A reader that saw number n never later finds a new event at or below n. */
export interface EventStorage {
  getEvents(
    runId: string,
    options: Scope & { readonly after?: number; readonly limit?: number },
  ): Promise<readonly EventRecord[]>
  /** What is new for many readers in one query; a run that does not exist is left out. */
  tail(
    cursors: readonly { readonly runId: string; readonly after: number }[],
    limitEach: number,
  ): Promise<readonly EventTail[]>
}

/** The log lines of runs. */
export interface LogStorage {
  /** In the order of writing; `after` is the id of the last log seen. */
  getLogs(
    runId: string,
    options: Scope & { readonly after?: string; readonly limit?: number },
  ): Promise<readonly LogRecord[]>
  /** These logs of any runs, in one query and in any order; those that are not there are left out. */
  findLogs(logs: readonly LogPlace[]): Promise<readonly LogRecord[]>
}

/** Where a log is. */
export interface LogPlace {
  readonly runId: string
  readonly id: string
}

/** A signal on its way to a run. */
export interface NewSignal {
  readonly runId: string
  readonly tenant?: string
  readonly name: string
  readonly payload: Json | null
  /** A second signal with the same key to the same run is not kept, and a `duplicate` also after the end of the run. */
  readonly dedupeKey: string | null
  readonly events: readonly EventTemplate[]
  /** Keeps which signal it was. */
  readonly audit?: AuditNote
}

/** Whether a signal was kept, and why not. */
export type SignalAnswer =
  | { readonly kept: true; readonly position: number }
  | { readonly kept: false; readonly reason: 'duplicate' }
  | { readonly kept: false; readonly reason: 'not-found' }
  | { readonly kept: false; readonly reason: 'wrong-state'; readonly run: RunRecord }

/** Signals from outside to a run. */
export interface SignalStorage {
  /** Adds 1 to the run's `wakes`, and makes it due when it is suspended for steps, in one write with the signal. */
  send(signal: NewSignal): Promise<SignalAnswer>
  /** Not consumed yet, in the order of arrival. */
  getUnread(runId: string): Promise<readonly SignalRecord[]>
}

/** Runs that go on from where another one was. */
export interface ForkStorage {
  /** The new run with its steps, in one write; `null` when there is no such origin. May be repeated. */
  fork(fork: NewFork): Promise<RunRecord | null>
}

/** Runs that wait for more triggers of their kind. */
export interface DebounceStorage<Trx = unknown> {
  /**
   * Gives its payload to the newest run of the key that has never begun, and puts that one off; creates the run when there is
   * none. In one write: triggers at the same moment find one and the same run. In a transaction of the caller's where one is
   * given. May be repeated.
   */
  enqueue(debounced: DebouncedRun, transaction?: Trx): Promise<EnqueueAnswer>
  /**
   * Appends its entries to the newest run of the key, if that one has never begun and its list has room for all of them;
   * creates the run otherwise. In one write, and in a transaction of the caller's where one is given. May be repeated: no
   * entry comes twice, for as long as the run that it has come to is there.
   */
  join(batched: BatchedRun, transaction?: Trx): Promise<EnqueueAnswer>
}

/** Writes beside rows of the application, in one transaction. */
export interface TransactionStorage<Trx = unknown> {
  /**
   * Runs `body`, then the commit it returns, as the last statements of one transaction. A lost lease rolls back and is
   * answered; an error of the body rolls back and is thrown; longer than `timeoutMs` is `TRANSACTION_TIMEOUT`. A storage
   * that knows the body's error for trouble of its own (a broken connection, a deadlock) throws a `StorageError`
   * instead, and the body is run again.
   */
  commitWith<T>(
    body: (trx: Trx) => Promise<{ readonly commit: RunCommit; readonly value: T }>,
    timeoutMs: number,
  ): Promise<{ readonly answer: CommitAnswer; readonly value: T | undefined }>
  /** Enqueues inside a transaction of the caller, who decides whether it happens. */
  enqueue(trx: Trx, runs: readonly NewRun[]): Promise<readonly EnqueueAnswer[]>
  /** A transaction of the caller's on the storage's own connection. */
  run<T>(body: (trx: Trx) => Promise<T>): Promise<T>
}

/**
 * `runs`: something became due, by no call of this process where it is from elsewhere; with a worker, its last claim has not
 * looked everywhere, and it alone should go on.
 * `run`: this run changed. `cancel`: somebody wants this running run cancelled, which its holder learns from its next
 * renewal. Hints may be lost or doubled.
 */
export type Hint =
  | { readonly kind: 'runs'; readonly workerId?: string; readonly isFromElsewhere?: boolean }
  | { readonly kind: 'run'; readonly runId: string }
  | { readonly kind: 'cancel'; readonly runId: string }

/** Hints that something changed. */
export interface WatchStorage {
  /** `fromElsewhere`: as long as it lasts, what other processes do is told of as well, whatever else is waited for. */
  subscribe(listener: (hint: Hint) => void, options?: { readonly fromElsewhere?: boolean }): () => void
  /** Nobody waits for a hint at present: what carries them from elsewhere may be given up until somebody does. */
  rest?(): void
}

/** What one job may do in all processes together, as whoever claims its runs has it. */
export interface JobLimits {
  readonly jobName: string
  /** Runs of the job that are `running`; those whose lease has run out count until they are recovered. */
  readonly concurrency: number | null
  /** Runs of the job that are claimed under limits in any `per` ms by the storage's clock; `max` is `MOST_STARTS` at most. */
  readonly rateLimit: RateLimit | null
}

/** So many starts of each job a storage remembers. */
export const MOST_STARTS = 10_000

/** How much of its limits a job uses. */
export interface JobLoad {
  readonly running: number
  /** Until its rate lets one more begin; 0 when it does, and without one. */
  readonly opensInMs: number
}

/** What a claim under limits took, and when it may be worth while to ask again: 0 says that no time is known. */
export interface LimitedClaim {
  readonly runs: readonly RunRecord[]
  readonly opensInMs: number
}

/** Limits and pauses that hold in all processes together. */
export interface LimitStorage {
  /**
   * As `claim`, of the one job, and no more than its limits leave room for: any number of these at once keep them. The
   * starts are written down in the same write. What was claimed by one whose answer was lost is found by `claim`.
   */
  claim(params: LimitedClaimParams, limits: JobLimits): Promise<LimitedClaim>
  load(limits: JobLimits): Promise<JobLoad>
  /** No claim takes runs of the job, with or without limits, until it is resumed. */
  pause(jobName: string, audit?: AuditNote): Promise<void>
  /** Its due runs are due for everybody: a hint says so. */
  resume(jobName: string, audit?: AuditNote): Promise<void>
  paused(): Promise<readonly string[]>
}

/** Of which job, its limits say. */
export type LimitedClaimParams = Omit<ClaimParams, 'jobs' | 'repeat'>

/** How many runs of a job a worker may begin in a time. */
export interface RateLimit {
  /** Runs begun, in any stretch of `per` milliseconds. */
  readonly max: number
  /** Milliseconds. */
  readonly per: number
}
