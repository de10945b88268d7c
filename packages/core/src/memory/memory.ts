import type { RunChange, RunRecord } from '../port'
import type { Audit } from './audit'
import type { Clock } from './clock'
import type { DebounceKeys, RunIds } from './debounce'
import type { GatheredTable } from './gathered-table'
import type { HourTable } from './statistics'
import type { Hints } from './hints'
import type { JobStates } from './job-limits'
import type { MessageTable } from './message-table'
import type { Rules } from './rules'
import type { Leads } from './leads'
import type { RunTable } from './run-table'
import type { ScheduleTable } from './schedule-table'
import type { Strays } from './archiving'
import type { WorkerTable } from './worker-table'

/** What every operation of the memory storage works on. */
export interface Memory {
  readonly table: RunTable
  readonly rules: Rules
  readonly clock: Clock
  readonly hints: Hints
  readonly jobs: JobStates
  readonly leads: Leads
  readonly workers: WorkerTable
  readonly schedules: ScheduleTable
  readonly messages: MessageTable
  readonly gathered: GatheredTable
  readonly debounceKeys: DebounceKeys
  /** To which runs triggers have come, by the ids of the runs that they would have created. */
  readonly joined: RunIds
  readonly strays: Strays
  readonly audit: Audit
  readonly hours: HourTable
}

/** Answers are copies: whoever changes one changes nothing here. */
export function copyOf(record: RunRecord): RunRecord {
  return { ...record }
}

/** What a caller handed over, kept so that nobody changes it afterwards. */
export function frozenCopy<T extends object>(value: T): Readonly<T> {
  return Object.freeze({ ...value })
}

/** A change that shares nothing with what the caller handed over. */
export function ownChange(change: RunChange): RunChange {
  const { errorDetail, waitingFor } = change
  if (waitingFor?.kind === 'steps') Object.freeze(waitingFor.steps)
  if (waitingFor != null) Object.freeze(waitingFor)
  return errorDetail == null ? change : { ...change, errorDetail: frozenCopy(errorDetail) }
}
