import type { ArchivingStorage } from './archiving'
import type { AuditNote, AuditStorage, SettingsStorage } from './audit'
import type {
  Capability,
  EventStorage,
  DebounceStorage,
  ForkStorage,
  LimitStorage,
  LogStorage,
  SignalStorage,
  TransactionStorage,
  WatchStorage,
} from './capabilities'
import type { ClusterStorage } from './cluster-storage'
import { CapabilityMissingError, type ErrorDetail, type RunStatus } from '../base'
import type { EventTemplate, Instant, Lease, RunRecord, Scope, StepKind, StepRecord } from './records'
import type { StatisticsStorage } from './statistics-storage'
import type { CommitAnswer, EnqueueAnswer, NewRun, RunCommit } from './writes'

/**
 * The ports of the engine, types only. `Storage` is what an engine cannot do without; the optional groups at its end
 * are capabilities, and a storage that lacks one says so by leaving the property out.
 *
 * Rules every implementation keeps (the contract in `core/testing` checks them):
 * - Every method is atomic: all of it is there afterwards, or nothing. An exception means "nothing, or unknown".
 * - No comparison uses a clock of the caller. Durations arrive in milliseconds and are added to the storage's own time;
 *   instants arrive only where they are the user's data (`runAt`).
 * - Values (`payload`, `output`, …) are JSON text the storage keeps as it is and never reads. `null` stands for
 *   `undefined`; the JSON value null is the text `null`.
 * - Each write that changes a run bumps its `version`, appends the event templates that come with it under the next
 *   numbers of `lastEventSequence`, and does nothing else with them. A storage without `events` drops them.
 */

export interface ClaimParams {
  readonly workerId: string
  /** New for each claim; every run claimed by it carries it. */
  readonly claimToken: string
  readonly jobs: readonly string[]
  readonly limit: number
  readonly leaseMs: number
  /** Of the suspects (`isSuspect`) a claim takes one at most; none with this. Other due runs are taken past those left. */
  readonly holdsSuspect: boolean
  readonly events: readonly EventTemplate[]
  /** The answer to this very claim was lost: return what it claimed, claim nothing. */
  readonly repeat?: boolean
}

/** Whether a lease still holds. */
export type RenewAnswer =
  | { readonly kept: true; readonly wakes: number; readonly cancelRequested: boolean }
  | { readonly kept: false }

/** Whose runs are taken back, and what becomes of them: that is for `recoveryOf` to say. */
export interface RecoverParams {
  /** Recover the leases of this worker whether they have run out or not: the caller swears that it is dead. */
  readonly deadWorkerId: string | null
  /** False: that worker left on purpose, and the loss counts nothing. Default true. */
  readonly isCrash?: boolean
  /** Runs this worker holds itself: never touched. */
  readonly held: readonly string[]
  readonly maxCrashes: number
  /** From 0 up to 1, new for each call. */
  readonly jitter: number
  /** Suspects are taken last: as long as one is there it shows whose fault it was. */
  readonly limit: number
  readonly crashLimit: { readonly error: string; readonly detail: ErrorDetail }
  /**
   * Jobs whose runs are failed right here at the crash limit. Those of others are due at once instead, and whoever claims
   * one ends it, who knows what its job wants done with a failure. Default: all.
   */
  readonly failsOnly?: readonly string[]
  readonly events: {
    readonly pending: readonly EventTemplate[]
    readonly cancelled: readonly EventTemplate[]
    readonly failed: readonly EventTemplate[]
  }
}

/** What an operator does to one run. */
export type RunCommand = { readonly runId: string; readonly tenant?: string; readonly audit?: AuditNote } & (
  | {
      readonly kind: 'cancel'
      /** When it becomes `cancelled` at once, and when it is running and only asked to. */
      readonly events: { readonly cancelled: readonly EventTemplate[]; readonly requested: readonly EventTemplate[] }
    }
  | { readonly kind: 'retry'; readonly events: readonly EventTemplate[] }
  | { readonly kind: 'park'; readonly reason: string; readonly events: readonly EventTemplate[] }
  | { readonly kind: 'unpark'; readonly events: readonly EventTemplate[] }
  | {
      readonly kind: 'failParked'
      readonly error: string
      readonly detail: ErrorDetail
      readonly events: readonly EventTemplate[]
    }
  | { readonly kind: 'remove' }
)

/** `run` is the run after the command (before it, for `remove`). */
export type CommandAnswer =
  | { readonly applied: true; readonly run: RunRecord }
  | { readonly applied: false; readonly reason: 'not-found' }
  | { readonly applied: false; readonly reason: 'wrong-state'; readonly run: RunRecord }

/** Which ended runs to remove: those that meet every condition. Children of a run that has not ended stay. */
export interface PurgeParams {
  readonly statuses: readonly RunStatus[]
  readonly tenant?: string
  readonly jobNames?: readonly string[]
  /** Ended longer ago than this. */
  readonly olderThanMs?: number
  /** Ended before this. */
  readonly before?: Instant
  /** Leave the newest ended runs alone, this many. */
  readonly keepNewest?: number
  readonly limit: number
  /** Keeps which runs were removed, when any were. */
  readonly audit?: AuditNote
}

/** The place of a run in the order of `getRuns`: a page goes on after it, whether the run is still there or not. */
export interface RunCursor {
  readonly createdAt: Instant
  readonly id: string
}

/** Newest first (`createdAt`, then id). A list matches what is in it, an empty one nothing. */
export interface RunQuery {
  readonly ids?: readonly string[]
  readonly statuses?: readonly RunStatus[]
  readonly jobNames?: readonly string[]
  /** Whether `waitingFor` is of the kind `retry`, or is not. */
  readonly waitsForRetry?: boolean
  /** Whether `waitingFor` is of the kind `unpark`, or is not. */
  readonly parked?: boolean
  readonly tenant?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly parentRunId?: string
  /** Those that hold a slot of this concurrency key. */
  readonly holdingKey?: string
  /** Created then or later. */
  readonly createdFrom?: Instant
  /** Created earlier. */
  readonly createdBefore?: Instant
  /** The id begins so, with no character beyond those of ids. */
  readonly idPrefix?: string
  /** The `code` in `errorDetail`. */
  readonly errorCode?: string
  /** Suspended, with a waiting step of one of these kinds. */
  readonly waitsForKinds?: readonly StepKind[]
  readonly limit?: number
  /** The last run of the page before. */
  readonly cursor?: RunCursor
}

/** Which runs are counted, and how far. */
export interface CountQuery extends Omit<RunQuery, 'limit' | 'cursor'> {
  /** Nothing is counted any further: a number that is this one means "at least so many". */
  readonly upTo?: number
}

/** How many runs of each status there are. */
export interface StatusCounts extends Readonly<Record<RunStatus, number>> {
  /** Of the pending ones: those that wait for a retry. */
  readonly waitsForRetry: number
  /** Of the pending ones: those that are parked. */
  readonly parked: number
}

/** When there will be something to do. */
export interface NextDue {
  /**
   * Until the earliest pending run of the given jobs is due (0: it is); `null` without one. Ignores concurrency keys,
   * suspects, limits and pauses.
   */
  readonly runInMs: number | null
  /** Until the first lease of a running run runs out; `null` without one. */
  readonly leaseInMs: number | null
  /** Names of due pending runs that are not among the given jobs. */
  readonly unknownJobs: readonly string[]
}

/** What an engine needs of a database. */
export interface Storage<Trx = unknown> {
  /**
   * Names the database among those that this process, or this origin of a browser, can reach: storages of one location
   * are on the same runs. Nothing secret is in it. Left out where nobody can tell.
   */
  readonly location?: string | undefined
  /** Creates or updates whatever the storage needs. Any number of processes may call it at once, any number of times. */
  migrate(): Promise<void>
  /** All or nothing, answers in the order of the runs. Throws `keyConflict()` for a refused idempotency key. */
  enqueue(runs: readonly NewRun[]): Promise<readonly EnqueueAnswer[]>
  /** Up to `limit` due runs, by `priority` (high first), `availableAt`, `id`; no more than one of them a suspect. */
  claim(params: ClaimParams): Promise<readonly RunRecord[]>
  /**
   * One answer a commit, in order. A lost one does not disturb the others, nor does one whose run somebody holds: it is
   * `isBusy`. An exception leaves all undecided.
   */
  commit(commits: readonly RunCommit[]): Promise<readonly CommitAnswer[]>
  /** One answer a lease, in order. A lease that ran out but was not recovered is renewed. */
  renew(leases: readonly Lease[], leaseMs: number): Promise<readonly RenewAnswer[]>
  recover(params: RecoverParams): Promise<readonly RunRecord[]>
  command(command: RunCommand): Promise<CommandAnswer>
  /** How many ended runs were removed, `limit` at most; fewer where they have much to remove, and 0 when there are none left. */
  purge(params: PurgeParams): Promise<number>
  getRun(runId: string, scope?: Scope): Promise<RunRecord | null>
  getRuns(query: RunQuery): Promise<readonly RunRecord[]>
  /** In the order of `index`, then of writing. */
  getSteps(runId: string, scope?: Scope): Promise<readonly StepRecord[]>
  /** All numbers are of one moment; with `upTo` each may be of its own. */
  counts(query: CountQuery): Promise<StatusCounts>
  nextDue(jobs: readonly string[]): Promise<NextDue>
  /** Throws `NotMigratedError` or `SchemaTooNewError`; a storage without a schema leaves it out. */
  checkSchema?(): Promise<void>
  close?(): Promise<void>

  /**
   * A process has one instance on the storage of this name, as a tab of a browser has: a second one is the same code loaded
   * anew, and takes over from the first. Left out where several are as good.
   */
  readonly soleInstance?: string | undefined
  readonly events?: EventStorage
  readonly logs?: LogStorage
  readonly signals?: SignalStorage
  readonly transaction?: TransactionStorage<Trx>
  readonly watch?: WatchStorage
  readonly limits?: LimitStorage
  readonly forks?: ForkStorage
  readonly debounce?: DebounceStorage<Trx>
  readonly archiving?: ArchivingStorage
  readonly audit?: AuditStorage
  readonly settings?: SettingsStorage
  readonly statistics?: StatisticsStorage
  readonly cluster?: ClusterStorage<Trx>
}

/** The optional group of that name, or `CAPABILITY_MISSING` for who wanted it. */
export function capability<Name extends Capability>(
  storage: Storage,
  name: Name,
  wanted: string,
): NonNullable<Storage[Name]> {
  const group = storage[name]
  if (group === undefined) throw new CapabilityMissingError(name, wanted)
  return group
}
