import type { Overlap } from '@coji/durably-core'
import type { ScheduleRecord } from '@coji/durably-core/storage'
import { decodeDefinition, type Missed } from './definition'
import type { Timing } from './timing'

/** A schedule as it was when it was read. */
export interface Schedule {
  readonly name: string
  readonly tenant: string
  readonly jobName: string
  readonly payload: unknown
  readonly timing: Timing
  readonly start: string | null
  readonly end: string | null
  readonly missed: Missed
  readonly overlap: Overlap
  readonly jitter: number
  readonly labels: Readonly<Record<string, string>>
  readonly priority: number
  /** The code that defines it; `null` for one that `create()` made. */
  readonly source: string | null
  /** Why it is paused; `null` for one that is not. */
  readonly pausedBecause: string | null
  /** The next instant; `null` when there is none, while it is paused, and for the moment until it is computed. */
  readonly nextAt: string | null
  /** Every instant up to here was dealt with. */
  readonly firedUntil: string
  /** How many instants have fired, and how many have not. */
  readonly firedCount: number
  readonly missedCount: number
  readonly createdAt: string
  readonly updatedAt: string
  /** When it had no next instant any more. */
  readonly endedAt: string | null
  /** Runs of it have this as their `scheduleId`. */
  readonly id: string
}

export function toSchedule(record: ScheduleRecord): Schedule {
  const { timing, start, end, missed, jitterMs, run } = decodeDefinition(record.definition)
  return {
    ...{ id: record.id, name: record.name, tenant: record.tenant, jobName: record.jobName },
    payload: record.payload === null ? undefined : (JSON.parse(record.payload) as unknown),
    ...{ timing, start, end, missed, overlap: record.overlap, jitter: jitterMs },
    ...{ labels: run.labels, priority: run.priority, source: record.source },
    ...{ pausedBecause: record.pausedBecause, nextAt: record.nextAt, firedUntil: record.firedUntil },
    ...{ firedCount: record.fired, missedCount: record.missed },
    ...{ createdAt: record.createdAt, updatedAt: record.updatedAt, endedAt: record.endedAt },
  }
}
