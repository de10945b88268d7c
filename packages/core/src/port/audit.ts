import type { Json } from '../base'
import type { Instant, RunRecord } from './records'
import type { ScheduleRecord } from './schedule-storage'

/** Who does something, on its way into the storage: the write that does it keeps what was before and what is after. */
export interface AuditNote {
  /** A ULID made by the caller. */
  readonly id: string
  readonly actor: string
  /** What is done, such as `cancel`. */
  readonly action: string
}

/** What somebody did. Nothing is kept of what was refused. */
export interface AuditRecord extends AuditNote {
  readonly at: Instant
  readonly tenant: string
  readonly targetKind: 'run' | 'runs' | 'job' | 'settings' | 'schedule' | 'messages'
  /** The id of the run, the name of the job or of the schedule; empty for many runs, for messages, and for settings. */
  readonly target: string
  readonly before: Json | null
  readonly after: Json | null
}

/** The place of a record in the list. */
export interface AuditCursor {
  readonly at: Instant
  readonly id: string
}

/** Newest first. */
export interface AuditQuery {
  readonly tenant?: string
  readonly actor?: string
  readonly action?: string
  readonly target?: string
  readonly limit?: number
  /** The last one of the page before. */
  readonly cursor?: AuditCursor
}

/** What operators did. A storage that has it keeps the note that a command, a change or a setting carries, with what it is of. */
export interface AuditStorage {
  list(query: AuditQuery): Promise<readonly AuditRecord[]>
  /** How many were removed, the oldest first. */
  purge(params: { readonly olderThanMs: number; readonly limit: number }): Promise<number>
}

/** What is set in the database, for all processes. Names and values are the engine's. */
export interface SettingsStorage {
  get(): Promise<Readonly<Record<string, Json>>>
  /** `null` takes a setting back. */
  set(changes: Readonly<Record<string, Json | null>>, audit?: AuditNote): Promise<Readonly<Record<string, Json>>>
}

/** What is kept of a run before and after something was done to it. */
export function auditViewOf({ status, attempt, waitingFor, cancelRequestedAt }: RunRecord): object {
  return { status, attempt, waitingFor: waitingFor?.kind ?? null, cancelRequestedAt }
}

/** The same of a schedule. What its runs get is not among it. */
export function auditViewOfSchedule(schedule: ScheduleRecord): object {
  const { jobName, definition, overlap, pausedBecause, version } = schedule
  return { jobName, definition: JSON.parse(definition) as unknown, overlap, pausedBecause, version }
}
