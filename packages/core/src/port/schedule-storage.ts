import type { AuditNote } from './audit'
import type { Lead } from './cluster-storage'
import type { Json } from '../base'
import type { EventTemplate, Instant, RunRecord } from './records'
import type { NewRun } from './writes'

/** What a schedule does while a run of it has not ended yet. */
export type Overlap = 'allow' | 'skip' | 'queue' | 'cancel'

/**
 * What somebody decides of a schedule. A storage keeps `definition` and `payload` as they are, and reads nothing of them but
 * `run.labels` of the definition, for `list`.
 */
export interface ScheduleContent {
  readonly jobName: string
  readonly payload: Json | null
  /** When it fires and how its runs are made. */
  readonly definition: Json
  readonly overlap: Overlap
}

/** A schedule on its way into the storage. */
export interface NewSchedule extends ScheduleContent {
  /** A ULID made by the caller: runs know their schedule by it. */
  readonly id: string
  readonly tenant: string
  /** Unique within the tenant. */
  readonly name: string
  /** The code that defines it; `null` for one that was created by a call. */
  readonly source: string | null
}

/** A schedule as a storage has it. */
export interface ScheduleRecord extends NewSchedule {
  readonly version: number
  /** `null` for one that is not paused. */
  readonly pausedBecause: string | null
  /** Up to here every instant was dealt with; none of them fires again, whatever becomes of its run. */
  readonly firedUntil: Instant
  /** The next one; `null` until who has the lead has computed it, while it is paused, and when there is none. */
  readonly nextAt: Instant | null
  /** When who has the lead is to look at it; `null` while it is paused and when there is no next instant. */
  readonly dueAt: Instant | null
  /** How many instants have fired, and how many have not. */
  readonly fired: number
  readonly missed: number
  readonly createdAt: Instant
  readonly updatedAt: Instant
  /** There is no next instant. */
  readonly endedAt: Instant | null
}

/** A run of a schedule that has not ended. */
export interface OpenRun {
  readonly id: string
  /** `null` for one that was started by hand. */
  readonly scheduledFor: Instant | null
}

/** One that has to be looked at. */
export interface DueSchedule {
  readonly schedule: ScheduleRecord
  /** Empty where `overlap` is `allow`: nobody asks. */
  readonly openRuns: readonly OpenRun[]
}

/** What time has brought. */
export interface DueSchedules {
  /** By the clock of the storage: instants up to here have come. */
  readonly now: Instant
  /** The first `limit` by `dueAt`, then id. */
  readonly schedules: readonly DueSchedule[]
  /** Until the next one is due, when none of them is left out; `null` without one. */
  readonly nextInMs: number | null
}

/** What has become of the instants of a schedule up to `firedUntil`. */
export interface Firing {
  readonly scheduleId: string
  /** As it was read: one that has been changed, paused or fired since is left alone. */
  readonly version: number
  /** Each with this schedule as its `scheduleId`, and the instant as `scheduledFor`. */
  readonly runs: readonly NewRun[]
  readonly firedUntil: Instant
  /** `null`: it has ended. */
  readonly nextAt: Instant | null
  /** How many of the instants have no run. */
  readonly missed: number
  /** Ids of runs of this schedule that make way for the new ones, each as by a cancel. */
  readonly ends: readonly string[]
}

/** What is appended to the events of runs that make way. */
export interface EndingEvents {
  /** Of one that waits, and ends at once. */
  readonly cancelled: readonly EventTemplate[]
  /** Of one that runs, and ends when its worker hears of it. */
  readonly requested: readonly EventTemplate[]
}

/**
 * `created`: ids of the runs that were not there yet. `ended`: the runs that made way, as they are now; those that had ended
 * before are not among them. `isBusy`: nothing of it was written, for somebody has locked what it changes.
 */
export interface FiringAnswer {
  readonly kept: boolean
  readonly isBusy?: true
  readonly created: readonly string[]
  readonly ended: readonly RunRecord[]
}

/** A schedule by its name. */
export interface ScheduleKey {
  readonly tenant: string
  readonly name: string
}

/** A change of a schedule by somebody other than time. */
export interface ScheduleChange extends ScheduleKey {
  /** As it was read; whatever it is without one. */
  readonly version?: number
  readonly content?: ScheduleContent
  readonly source?: string | null
  /** A reason pauses it, `null` has it go on. */
  readonly pausedBecause?: string | null
  /** What it did up to now counts no more: its next instant is the first one from now on. */
  readonly isAnew: boolean
  readonly audit?: AuditNote
}

/** Runs that somebody starts beside time. */
export interface StartByHand {
  readonly scheduleId: string
  /** Each with this schedule as its `scheduleId`. */
  readonly runs: readonly NewRun[]
  readonly audit: AuditNote
}

/** By tenant, then name. */
export interface ScheduleQuery {
  readonly tenant?: string
  readonly source?: string
  readonly jobName?: string
  /** Its runs get each of these. */
  readonly labels?: Readonly<Record<string, string>>
  readonly isPaused?: boolean
  /** Whether there is no next instant any more. */
  readonly isEnded?: boolean
  readonly limit?: number
  /** The last one of the page before. */
  readonly after?: ScheduleKey
}

/** Schedules: they create runs at instants, each of them once. */
export interface ScheduleStorage {
  /**
   * One answer a schedule, in order: whether its name was free. It is due at once, to have its first instant computed. A note
   * goes with a list of one.
   */
  create(
    schedules: readonly NewSchedule[],
    audit?: AuditNote,
  ): Promise<readonly { readonly schedule: ScheduleRecord; readonly created: boolean }[]>
  /** `null` when there is none of this name, or not in this version. */
  change(change: ScheduleChange): Promise<ScheduleRecord | null>
  /** Its runs stay. */
  remove(key: ScheduleKey, audit?: AuditNote): Promise<boolean>
  get(key: ScheduleKey): Promise<DueSchedule | null>
  list(query: ScheduleQuery): Promise<readonly ScheduleRecord[]>
  due(limit: number): Promise<DueSchedules>
  /**
   * Creates the runs, has those end that make way, and moves the schedules on, each firing in one write; one answer a firing,
   * in order. Nothing happens without the lead. A run of a schedule and an instant is there once, whoever creates it.
   */
  fire(lead: Lead, firings: readonly Firing[], events?: EndingEvents): Promise<readonly FiringAnswer[]>
  /** Creates runs together with the note of who wants them. Answers the ids of those that were not there yet. */
  startByHand(start: StartByHand): Promise<readonly string[]>
  /**
   * How many that ended longer ago than this, and that no code defines, were removed, `limit` at most; none without the lead.
   * Their runs stay.
   */
  purge(lead: Lead, params: { readonly olderThanMs: number; readonly limit: number }): Promise<number>
}
