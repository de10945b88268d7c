import { InvalidOptionError } from '@coji/durably-core'
import { refuseUnknownOptions } from '@coji/durably-core/extend'
import type { ScheduleRecord } from '@coji/durably-core/storage'
import { decodeDefinition } from './definition'
import { SCHEDULE, timesOf, type TimingOptions } from './schedule-options'
import { instantsOf, type NextAfter } from './timing'

const MOST = 1000

/** The next instants of a timing that is not stored yet. */
export function previewOf(timing: TimingOptions, nowMs: number, count: number): Date[] {
  refuseUnknownOptions('preview()', timing, SCHEDULE)
  const { timing: checked, ...term } = timesOf('preview()', timing)
  return nextInstants(instantsOf(checked, term, new Date(nowMs).toISOString()), nowMs, count)
}

/** The next instants of a schedule: those that were dealt with come no more. */
export function previewOfSchedule(schedule: ScheduleRecord, nowMs: number, count: number): Date[] {
  const { timing, ...term } = decodeDefinition(schedule.definition)
  const afterMs = Math.max(nowMs, Date.parse(schedule.firedUntil))
  return nextInstants(instantsOf(timing, term, schedule.createdAt), afterMs, count)
}

function nextInstants(next: NextAfter, afterMs: number, count: number): Date[] {
  if (!(Number.isSafeInteger(count) && count >= 1 && count <= MOST)) {
    throw new InvalidOptionError(`preview() takes a count from 1 to ${MOST}, not ${String(count)}.`)
  }
  const instants: Date[] = []
  for (let instant = next(afterMs); instant !== null && instants.length < count; instant = next(instant)) {
    instants.push(new Date(instant))
  }
  return instants
}
