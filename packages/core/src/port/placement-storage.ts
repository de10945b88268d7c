import type { Lead } from './cluster-storage'
import type { EventTemplate, Instant, RunRecord } from './records'

/** The name of the lead under which runs are placed. */
export const LEADER = 'leader'

/** After so long without a leader any worker claims what a leader should place. */
export const LEADERLESS_MS = 30_000

/** An assignment that was not started is taken back from a worker that is gone after so long, */
export const REASSIGN_AFTER_MS = 10_000
/** and from one that lives after so many times that. */
export const PATIENCE_WITH_THE_LIVING = 10

/** `draining`: it ends what it has in hand and takes nothing. `detached`: it has left. */
export type WorkerPresence = 'active' | 'draining' | 'detached'

/** A worker's sign of life, and what it can take. */
export interface WorkerBeat {
  readonly workerId: string
  readonly presence: WorkerPresence
  /** Runs that it executes at a time. */
  readonly capacity: number
  /** The jobs with runs that a leader may assign to it. */
  readonly placedJobs: readonly string[]
  readonly labels: Readonly<Record<string, string>>
  /** Of the code that it runs. */
  readonly codeVersion: string | null
  /** Without another one it counts as gone after so long. */
  readonly ttlMs: number
}

/** A worker as the others see it. */
export interface WorkerRecord extends Omit<WorkerBeat, 'ttlMs'> {
  readonly firstBeatAt: Instant
  readonly lastBeatAt: Instant
  /** By the clock of the storage; one that is detached is not. */
  readonly isAlive: boolean
  readonly assigned: number
  readonly running: number
  /** Among those are runs that lost their worker again and again. */
  readonly holdsSuspect: boolean
}

/** A job as some worker knows it. */
export interface KnownJobBeat {
  readonly name: string
  /** Of the definition; empty without one. */
  readonly version: string
  /** What others may want to know of the definition. A storage never reads it. */
  readonly options: string
}

/** Which code knows which definition. */
export interface KnownJobRecord extends KnownJobBeat {
  /** Of the code; empty without one. */
  readonly codeVersion: string
  readonly lastSeenAt: Instant
}

/** From where on tenants of a job are looked at. */
export interface TenantPlace {
  readonly jobName: string
  /** Those after this one, by name. */
  readonly tenant: string
}

/** Which runs wait for a place. */
export interface WaitingQuery {
  readonly jobs: readonly string[]
  /** Of these jobs also runs that lost their worker again and again: somebody may take one. */
  readonly suspectsOf: readonly string[]
  readonly from: readonly TenantPlace[]
  /** So many tenants of each job. */
  readonly tenants: number
  /** So many runs of each. */
  readonly limitEach: number
}

/** A run that is due and may start, as it was read. */
export interface WaitingRun {
  readonly runId: string
  readonly version: number
  readonly jobName: string
  readonly tenant: string
  readonly priority: number
  readonly availableAt: Instant
  readonly isSuspect: boolean
  /** `null` also for a run that has kept its slot. */
  readonly concurrencyKey: string | null
  /** So many runs of its key may start, itself included. */
  readonly roomOfKey: number
}

/** How many runs of a tenant are in hand: assigned or running. */
export interface TenantLoad {
  readonly tenant: string
  readonly held: number
}

/** What a leader looks at before it places runs. */
export interface Waiting {
  readonly runs: readonly WaitingRun[]
  readonly loads: readonly TenantLoad[]
  /** The last tenant of each job that was looked at; none for a job without more of them. */
  readonly upTo: readonly TenantPlace[]
}

/** One run for one worker. `version` is the one the leader saw: a run that changed since is not assigned. */
export interface Assignment {
  readonly runId: string
  readonly version: number
  readonly workerId: string
  /** False: it has no key, or has kept its slot. Without it the storage finds out. */
  readonly takesSlot?: boolean
  readonly events: readonly EventTemplate[]
}

/** A run that waits for its worker to start it. */
export interface AssignedRun {
  readonly runId: string
  readonly version: number
  readonly jobName: string
  readonly isSuspect: boolean
}

/** What a worker sees of the leader's work. */
export interface AssignedToWorker {
  /** By priority, then age. */
  readonly runs: readonly AssignedRun[]
  /** There is a leader, or was one within `LEADERLESS_MS`. */
  readonly isLed: boolean
}

/** What an assigned worker does with its runs, under the versions it was told. */
export interface AssignedParams {
  readonly workerId: string
  readonly runs: readonly Pick<AssignedRun, 'runId' | 'version'>[]
  readonly events: readonly EventTemplate[]
}

/** Which assignments are taken back. */
export interface OrphanParams {
  /** `null`: nobody leads, which the write looks at. */
  readonly lead: Lead | null
  /** Assigned longer ago than this, to a worker that is gone. */
  readonly reassignAfterMs: number
  /** Assigned longer ago than this, to whomever. */
  readonly livingAfterMs: number
  readonly limit: number
  readonly events: readonly EventTemplate[]
}

/** Placement of runs by an elected leader: the transitions assign, start, decline, orphan and free of the lifecycle. */
export interface PlacementStorage {
  beat(worker: WorkerBeat): Promise<void>
  /** Definitions that a worker of this code knows. */
  noteJobs(codeVersion: string, jobs: readonly KnownJobBeat[]): Promise<void>
  /** By id. */
  getWorkers(): Promise<readonly WorkerRecord[]>
  /** By name, then version. */
  getJobs(): Promise<readonly KnownJobRecord[]>
  /**
   * Workers that nobody has heard of for so long, and hold nothing; and jobs that nobody has told of for so long, of code that no
   * worker has then. Answers how many workers; nothing is forgotten without the lead.
   */
  forgetWorkers(lead: Lead, silentForMs: number): Promise<number>
  /**
   * Of runs without a tenant, and of each tenant that is looked at, the first ones by priority and age; and those that are
   * orphaned. What is not due, or may not start because of its key or a pause, is left out, and so are suspects that nobody takes.
   */
  waiting(query: WaitingQuery): Promise<Waiting>
  /** One answer an assignment: whether it was made. Takes the slot of the run's key. */
  assign(lead: Lead, assignments: readonly Assignment[]): Promise<readonly boolean[]>
  assigned(workerId: string, limit: number): Promise<AssignedToWorker>
  /** Takes leases as a claim does, and keeps the assignment's leader epoch. A run that is somebody else's is left out. */
  start(
    params: AssignedParams & { readonly claimToken: string; readonly leaseMs: number },
  ): Promise<readonly RunRecord[]>
  /** The worker is full, stops, or does not know the job. One answer a run. */
  decline(params: AssignedParams): Promise<readonly boolean[]>
  /** Takes back assignments that were not started in time and whose worker is gone, or much older ones. */
  orphan(params: OrphanParams): Promise<readonly RunRecord[]>
  /** Where nobody leads, orphaned runs are pending again. Answers how many. */
  free(limit: number): Promise<number>
}
