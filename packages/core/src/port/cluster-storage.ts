import type { InboxStorage } from './inbox-storage'
import type { Instant } from './records'
import type { PlacementStorage } from './placement-storage'
import type { ScheduleStorage } from './schedule-storage'

/** The lead over one name. The epoch grows with every change of leader and never returns, also over a crash. */
export interface Lead {
  readonly name: string
  readonly workerId: string
  readonly epoch: number
}

/** A lead as everybody sees it. */
export interface LeadRecord extends Lead {
  readonly until: Instant
  /** By the clock of the storage. */
  readonly isOver: boolean
}

/** Who wants the lead over what, and for how long. */
export interface LeadParams {
  readonly name: string
  readonly workerId: string
  readonly ttlMs: number
}

/**
 * What starts runs beside a trigger: time and messages; and who gets them. One process at a time has the lead over each.
 * That there is a leader is an optimisation; that two of them do no harm is the promise, kept by the guards of what they write.
 */
export interface ClusterStorage<Trx = unknown> {
  /** Takes or keeps the lead; `null` when somebody else has it. An error is the same as `null`. */
  lead(params: LeadParams): Promise<Lead | null>
  resign(lead: Lead): Promise<void>
  /** Who has it, or had it last. */
  getLead(name: string): Promise<LeadRecord | null>
  readonly schedules: ScheduleStorage
  readonly inbox: InboxStorage<Trx>
  readonly placement: PlacementStorage
}
