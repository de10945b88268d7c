import type { Lead } from './cluster-storage'
import type { EventTemplate, Instant, RunRecord } from './records'

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

/** Placement of runs by an elected leader: the transitions assign, start, decline and orphan of the lifecycle. */
export interface PlacementStorage {
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
}
