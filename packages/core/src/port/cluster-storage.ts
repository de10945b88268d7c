import type { EventTemplate, Instant, RunRecord } from './records'
import type { EnqueueAnswer, NewRun } from './writes'

/** The lead over one name. The epoch grows with every change of leader and never returns, also over a crash. */
export interface Lead {
  readonly name: string
  readonly workerId: string
  readonly epoch: number
}

/** A worker's sign of life: what it can take. */
export interface WorkerBeat {
  readonly workerId: string
  readonly jobs: readonly string[]
  readonly freeSlots: number
  readonly takesMore: boolean
  readonly ttlMs: number
}

/** A worker as the others see it. */
export interface WorkerRecord extends Omit<WorkerBeat, 'ttlMs'> {
  readonly lastBeatAt: Instant
  /** By the clock of the storage. */
  readonly isAlive: boolean
}

/** One run for one worker. `version` is the one the leader saw: a run that changed since is not assigned. */
export interface Assignment {
  readonly runId: string
  readonly version: number
  readonly workerId: string
  readonly events: readonly EventTemplate[]
}

/** What an assigned worker does with its run, under the version it was told. */
export interface AssignedParams {
  readonly runId: string
  readonly version: number
  readonly workerId: string
  readonly events: readonly EventTemplate[]
}

/** A time that has come for a schedule. */
export interface Firing {
  readonly lead: Lead
  readonly scheduleId: string
  readonly scheduledFor: Instant
  readonly nextAt: Instant | null
  readonly run: NewRun
}

/**
 * Placement of runs by an elected leader, and schedules: the transitions assign, start, decline and orphan of the
 * lifecycle. That there is a leader is an optimisation; that two of them do no harm is the promise, kept by the guards.
 */
export interface ClusterStorage {
  /** Takes or keeps the lead; `null` when somebody else has it. An error is the same as `null`. */
  lead(params: { readonly name: string; readonly workerId: string; readonly ttlMs: number }): Promise<Lead | null>
  resign(lead: Lead): Promise<void>
  beat(worker: WorkerBeat): Promise<void>
  getWorkers(): Promise<readonly WorkerRecord[]>
  /** One answer an assignment: whether it was made. Takes the slot of the run's key. */
  assign(lead: Lead, assignments: readonly Assignment[]): Promise<readonly boolean[]>
  /** Takes the lease as a claim does, and keeps the assignment's leader epoch; `null` when the run is somebody else's. */
  start(params: AssignedParams & { readonly claimToken: string; readonly leaseMs: number }): Promise<RunRecord | null>
  /** The worker is full, stops, or does not know the job. */
  decline(params: AssignedParams): Promise<boolean>
  /** Takes back assignments that were not started in time and whose worker is gone, or ten times as old. */
  orphan(params: {
    readonly reassignAfterMs: number
    readonly limit: number
    readonly events: readonly EventTemplate[]
  }): Promise<readonly RunRecord[]>
  /** Creates the run of a schedule's instant, once for all who try; `null` when it was there, or the lead is lost. */
  fire(firing: Firing): Promise<EnqueueAnswer | null>
}
