import type { DueSchedule, Firing, NewRun, OpenRun, ScheduleRecord } from '@coji/durably-core/storage'
import type { RunDrafts } from '@coji/durably-core/extend'
import { decodeDefinition, type Definition, type Missed } from './definition'
import { instantsOf, newestBetween, type NextAfter } from './timing'

/** Instants that get no run. */
export interface MissedInstants {
  readonly from: string
  readonly to: string
  readonly count: number
  readonly because: 'late' | 'overlap'
}

/** What is to be done about a schedule. */
export interface FiringPlan {
  readonly schedule: ScheduleRecord
  readonly firing: Firing
  readonly missed: readonly MissedInstants[]
}

/** What has become of the instants of a schedule up to `now`; `null`: nothing yet. */
export function planFiring(drafts: RunDrafts, due: DueSchedule, now: string): FiringPlan | null {
  const { schedule } = due
  const definition = decodeDefinition(schedule.definition)
  const untilMs = Date.parse(now)
  const instants = comeInstants({ schedule, definition }, untilMs)
  if (instants === null) return null
  const { late, onTime } = byLateness(instants, definition.missed, untilMs)
  const { heldBack, firing } = byOverlap(onTime, due)
  const newest = instants.at(-1) ?? Date.parse(schedule.firedUntil)
  const nextMs = nextOf({ schedule, definition })(newest)
  return {
    schedule,
    missed: [...missedOf(late, 'late'), ...missedOf(heldBack, 'overlap')],
    firing: {
      scheduleId: schedule.id,
      version: schedule.version,
      runs: firing.map((instant) => runAt(drafts, { schedule, definition }, toText(instant))),
      firedUntil: toText(newest),
      nextAt: nextMs === null ? null : toText(nextMs),
      missed: late.length + heldBack.length,
      ends: endedBy(firing.map(toText), due),
    },
  }
}

/** A schedule, and what its definition says. */
export interface ReadSchedule {
  readonly schedule: ScheduleRecord
  readonly definition: Definition
}

export function readSchedule(schedule: ScheduleRecord): ReadSchedule {
  return { schedule, definition: decodeDefinition(schedule.definition) }
}

function nextOf({ schedule, definition }: ReadSchedule): NextAfter {
  return instantsOf(definition.timing, definition, schedule.createdAt)
}

/** As many missed instants are counted; of more the last ones. */
const COUNTED = 1000

/** Those that nothing was done about; `null` while the next one is still to come. */
function comeInstants({ schedule, definition }: ReadSchedule, untilMs: number): readonly number[] | null {
  const { timing } = definition
  const next = nextOf({ schedule, definition })
  const handledMs = Date.parse(schedule.firedUntil)
  if (schedule.nextAt === null) {
    // The clock that let it pass at its definition may be behind the one of the storage.
    const isNew = timing.kind === 'at' && schedule.firedUntil === schedule.createdAt
    const afterMs = isNew ? Math.min(handledMs, Date.parse(timing.at) - 1) : handledMs
    return newestBetween(next, { afterMs, untilMs }, COUNTED)
  }
  // Who had the lead before has computed it, and others have seen it.
  const first = Date.parse(schedule.nextAt)
  return first > untilMs ? null : [first, ...newestBetween(next, { afterMs: first, untilMs }, COUNTED)]
}

/** Later than this an instant was missed, for those who skip what they missed. */
const LATE_AFTER_MS = 60_000

function byLateness(instants: readonly number[], missed: Missed, untilMs: number) {
  const isOnTime = (instant: number) => untilMs - instant <= LATE_AFTER_MS
  const most = missed === 'skip' ? instants.filter(isOnTime).length : missed === 'latest' ? 1 : missed.max
  const place = Math.max(0, instants.length - most)
  return { late: instants.slice(0, place), onTime: instants.slice(place) }
}

/** Of several that skip each other, or make way for each other, the last one fires. */
function byOverlap(instants: readonly number[], { schedule: { overlap }, openRuns }: DueSchedule) {
  if (overlap !== 'skip' && overlap !== 'cancel') return { heldBack: [], firing: instants }
  const isHeldBack = overlap === 'skip' && openRuns.length > 0
  const place = isHeldBack ? instants.length : Math.max(0, instants.length - 1)
  return { heldBack: instants.slice(0, place), firing: instants.slice(place) }
}

/** Those that make way. A run of one of these very instants, which somebody has made up for, is the one that they make way for. */
function endedBy(instants: readonly string[], { schedule, openRuns }: DueSchedule): readonly string[] {
  if (schedule.overlap !== 'cancel' || instants.length === 0) return []
  const isOlder = ({ scheduledFor }: OpenRun) => scheduledFor === null || !instants.includes(scheduledFor)
  return openRuns.filter(isOlder).map(({ id }) => id)
}

function missedOf(instants: readonly number[], because: MissedInstants['because']): readonly MissedInstants[] {
  const [from, to] = [instants[0], instants.at(-1)]
  if (from === undefined || to === undefined) return []
  return [{ from: toText(from), to: toText(to), count: instants.length, because }]
}

/** The run of an instant; without one, one that was started by hand. */
export function runAt(drafts: RunDrafts, { schedule, definition }: ReadSchedule, scheduledFor: string | null): NewRun {
  const { id: scheduleId, tenant, jobName, payload, overlap } = schedule
  const { run, jitterMs } = definition
  const waits = overlap === 'queue' || overlap === 'cancel'
  const turns = waits && { concurrencyKey: `schedule ${scheduleId}`, concurrencyLimit: 1, holdKeyWhileWaiting: true }
  const afterMs = scheduledFor === null ? 0 : Math.floor(jitterMs * drafts.environment.random())
  const own = { tenant, jobName, payload, scheduleId, scheduledFor, start: { afterMs } }
  return drafts.run({ ...run, ...turns, ...own, ...UNKEYED })
}

const UNKEYED = { idempotencyKey: null, onConflict: 'return', parentRunId: null } as const

function toText(ms: number): string {
  return new Date(ms).toISOString()
}
