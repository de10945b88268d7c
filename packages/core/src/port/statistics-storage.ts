import { addHistograms, type Histogram, type RunStatus } from '../base'
import type { Instant } from './records'

/** Up to which end of a run, in the order of `finishedAt` and id, all are counted. */
export interface CountedUntil {
  readonly finishedAt: Instant
  readonly runId: string
}

/** What there is to count of a run that has ended. */
export interface RunEnd {
  readonly runId: string
  readonly tenant: string
  readonly jobName: string
  readonly status: RunStatus
  readonly attemptBase: number
  readonly availableAt: Instant | null
  readonly startedAt: Instant | null
  readonly finishedAt: Instant
}

/** What a row counts: of one tenant or of all, of one job or of all. */
export interface HourKey {
  /** Its first instant. */
  readonly hour: Instant
  readonly tenant: string | null
  readonly jobName: string | null
}

/** What happened to runs in an hour, known once they have ended. */
export interface HourCounts {
  readonly started: number
  readonly completed: number
  readonly failed: number
  readonly timedOut: number
  readonly cancelled: number
  /** Milliseconds from the first start to the end, of those that completed in the hour. */
  readonly durations: Histogram
  /** Milliseconds from being due to the first start, of those that started in the hour. */
  readonly waits: Histogram
}

/** One row. */
export type HourRow = HourKey & HourCounts

/** Rows to add, and how far they count. */
export interface Fold {
  /** As it was read; `null` before the first. */
  readonly from: CountedUntil | null
  readonly to: CountedUntil
  /** New for each fold. */
  readonly token: string
  readonly rows: readonly HourRow[]
}

/** Hours of one kind of rows. */
export interface HourQuery {
  readonly tenant: string | null
  readonly jobName: string | null
  readonly from: Instant
  readonly before: Instant
}

/** Runs counted by the hour. It outlives the runs. */
export interface StatisticsStorage {
  /** The next ends that are not counted yet, of those that are older than `lagMs`: what commits late is not passed over. */
  ends(params: { readonly limit: number; readonly lagMs: number }): Promise<{
    readonly from: CountedUntil | null
    readonly ends: readonly RunEnd[]
  }>
  /** Adds the rows and moves on, in one write; whether it did. Not when somebody else has moved on since `from` was read. */
  fold(fold: Fold): Promise<boolean>
  /** In their order. `countedUntil` is `null` where nobody has counted yet. */
  hours(query: HourQuery): Promise<{ readonly countedUntil: Instant | null; readonly hours: readonly HourRow[] }>
  /** Removes the hours before it. */
  forget(before: Instant): Promise<void>
}

/** One name for all that is about a row. */
export function hourName({ hour, tenant, jobName }: HourKey): string {
  return JSON.stringify([hour, tenant, jobName])
}

/** Both together, with the rest of the first. */
export function addCounts<T extends HourCounts>(row: T, more: HourCounts): T {
  return {
    ...row,
    started: row.started + more.started,
    completed: row.completed + more.completed,
    failed: row.failed + more.failed,
    timedOut: row.timedOut + more.timedOut,
    cancelled: row.cancelled + more.cancelled,
    durations: addHistograms(row.durations, more.durations),
    waits: addHistograms(row.waits, more.waits),
  }
}
