import type { Overlap, RunStatus, StepKind, StepStatus, WorkerPresence } from '@coji/durably-core/storage'
import { type RawBuilder, sql } from 'kysely'

/**
 * Columns of `runs` as durably reads them: instants are ISO text, JSON is text, flags are 0 or 1. SQLite stores them so;
 * Postgres has `timestamptz` and `json`.
 */
export interface RunsTable {
  id: string
  tenant: string
  job_name: string
  job_version: string | null
  payload: string | null
  status: RunStatus
  idempotency_key: string | null
  concurrency_key: string | null
  concurrency_limit: number
  concurrency_slot: number | null
  hold_key_while_waiting: number
  priority: number
  available_at: string | null
  waiting_for: string | null
  current_step_index: number
  progress: string | null
  output: string | null
  error: string | null
  error_detail: string | null
  version: number
  attempt: number
  attempt_base: number
  crash_count: number
  assignments: number
  owner_id: string | null
  claim_token: string | null
  lease_epoch: number
  lease_until: string | null
  leader_epoch: number | null
  commit_no: number
  wakes: number
  wakes_wanted: number
  rest_until: string | null
  /** The `wakes` of the last signal. */
  last_signal: number
  last_event_sequence: number
  cancel_requested_at: string | null
  timeout_ms: number | null
  deadline_at: string | null
  parent_run_id: string | null
  /** The run whose steps this one began with. */
  forked_from: string | null
  /** A list of ids. */
  also_awaited_by: string | null
  schedule_id: string | null
  scheduled_for: string | null
  trace_parent: string | null
  heartbeat_at: string | null
  created_at: string
  updated_at: string
  started_at: string | null
  finished_at: string | null
  assigned_worker_id: string | null
  assigned_at: string | null
  log_ref: string | null
}

/** Labels of runs. */
export interface RunLabelsTable {
  run_id: string
  name: string
  value: string
  /** As of the run. */
  tenant: string | null
  created_at: string | null
}

/** Steps of runs. */
export interface StepsTable {
  id: string
  run_id: string
  name: string
  index: number
  kind: StepKind
  status: StepStatus
  attempt: number
  output: string | null
  error: string | null
  error_detail: string | null
  checkpoint: string | null
  wait_name: string | null
  due_at: string | null
  lease_epoch: number
  claim_token: string
  started_at: string
  completed_at: string | null
}

/** Log lines of jobs. */
export interface LogsTable {
  id: string
  run_id: string
  step_name: string | null
  level: 'info' | 'warn' | 'error'
  message: string
  data: string | null
  timestamp: string
}

/** The stored history of runs. */
export interface RunEventsTable {
  run_id: string
  seq: number
  event_type: string
  payload: string
  created_at: string
}

/** Signals to runs. */
export interface SignalsTable {
  run_id: string
  position: number
  name: string
  payload: string | null
  dedupe_key: string | null
  created_at: string
  consumed_at: string | null
}

/** Jobs of which nobody claims runs. */
export interface PausedJobsTable {
  job_name: string
  paused_at: string
}

/** The last starts of jobs with a rate that holds for all processes together. */
export interface JobStartsTable {
  job_name: string
  nth: number
  started_at: string
}

/** Who leads over what, or did last. */
export interface LeadersTable {
  name: string
  worker_id: string
  epoch: number
  lead_until: string
}

/** What creates runs at instants. */
export interface SchedulesTable {
  id: string
  tenant: string
  name: string
  source: string | null
  job_name: string
  payload: string | null
  definition: string
  overlap: Overlap
  version: number
  paused_because: string | null
  fired_until: string
  next_at: string | null
  due_at: string | null
  fire_token: string | null
  fired: number
  missed: number
  created_at: string
  updated_at: string
  ended_at: string | null
}

/** Messages. */
export interface InboxTable {
  id: string
  tenant: string
  type: string
  payload: string | null
  dedupe_key: string | null
  available_at: string
  created_at: string
  processed_at: string | null
  wanted: number
  round: number
  deliver_token: string | null
}

/** Messages that wait for others. */
export interface GatheredTable {
  id: string
  job_name: string
  tenant: string
  key: string
  mode: 'last' | 'all'
  max: number
  payload: string | null
  due_at: string
  created_at: string
  /** Among those that were delivered together. */
  place: number
  release_token: string | null
}

/** The last run of each key that was triggered with one; without a job, and with an id for the key, where that trigger has come. */
export interface DebouncedRunsTable {
  tenant: string
  job_name: string
  key: string
  run_id: string
}

/** Which messages jobs want. */
export interface SubscriptionsTable {
  job_name: string
  type: string
  definition: string
}

/** Names in the archive of logs that no run refers to. */
export interface ArchiveStraysTable {
  name: string
  announced_at: string
  is_given_up: number
}

/** What operators did. */
export interface AuditTable {
  id: string
  at: string
  tenant: string
  actor: string
  action: string
  target_kind: 'run' | 'runs' | 'job' | 'settings' | 'schedule' | 'messages'
  target: string
  before: string | null
  after: string | null
}

/** What operators have set. */
export interface SettingsTable {
  name: string
  value: string
  updated_at: string
}

/** Runs counted by the hour. */
export interface StatisticsTable {
  tenant_scope: string
  job_scope: string
  hour: string
  started: number
  completed: number
  failed: number
  timed_out: number
  cancelled: number
  durations: string
  waits: string
}

/** How far they are counted. */
export interface StatisticsPlaceTable {
  id: number
  finished_at: string
  run_id: string
  token: string
}

/** Workers that have told of themselves. */
export interface WorkersTable {
  worker_id: string
  presence: WorkerPresence
  capacity: number
  /** A list of names. */
  placed_jobs: string
  labels: string
  code_version: string | null
  first_beat_at: string
  last_beat_at: string
  alive_until: string
}

/** Definitions of jobs, by the code that knows them. */
export interface JobsTable {
  name: string
  version: string
  code_version: string
  options: string
  last_seen_at: string
}

/** Which migrations were applied. */
export interface SchemaVersionsTable {
  version: number
  applied_at: string
  min_reader: number
}

/** The tables under their default names. */
export interface DurablyDatabase {
  durably_runs: RunsTable
  durably_run_labels: RunLabelsTable
  durably_steps: StepsTable
  durably_logs: LogsTable
  durably_run_events: RunEventsTable
  durably_signals: SignalsTable
  durably_paused_jobs: PausedJobsTable
  durably_job_starts: JobStartsTable
  durably_leaders: LeadersTable
  durably_schedules: SchedulesTable
  durably_inbox: InboxTable
  durably_gathered: GatheredTable
  durably_debounced_runs: DebouncedRunsTable
  durably_subscriptions: SubscriptionsTable
  durably_archive_strays: ArchiveStraysTable
  durably_audit: AuditTable
  durably_settings: SettingsTable
  durably_statistics: StatisticsTable
  durably_statistics_place: StatisticsPlaceTable
  durably_workers: WorkersTable
  durably_jobs: JobsTable
  durably_schema_versions: SchemaVersionsTable
}

/** The tables without their prefix. */
export interface DurablyTables {
  runs: RunsTable
  run_labels: RunLabelsTable
  steps: StepsTable
  logs: LogsTable
  run_events: RunEventsTable
  signals: SignalsTable
  paused_jobs: PausedJobsTable
  job_starts: JobStartsTable
  leaders: LeadersTable
  schedules: SchedulesTable
  inbox: InboxTable
  subscriptions: SubscriptionsTable
  gathered: GatheredTable
  debounced_runs: DebouncedRunsTable
  archive_strays: ArchiveStraysTable
  audit: AuditTable
  settings: SettingsTable
  statistics: StatisticsTable
  statistics_place: StatisticsPlaceTable
  workers: WorkersTable
  jobs: JobsTable
  schema_versions: SchemaVersionsTable
}

export const TABLES = [
  'runs',
  'run_labels',
  'steps',
  'logs',
  'run_events',
  'signals',
  'paused_jobs',
  'job_starts',
  'leaders',
  'schedules',
  'inbox',
  'subscriptions',
  'gathered',
  'debounced_runs',
  'archive_strays',
  'audit',
  'settings',
  'statistics',
  'statistics_place',
  'workers',
  'jobs',
  'schema_versions',
] as const satisfies readonly TableName[]

export type TableName = keyof DurablyTables

/** The physical tables of one storage, as SQL. */
export type TableRefs = Readonly<Record<TableName, RawBuilder<unknown>>>

export function tableRefs(prefix: string, schema: string | null): TableRefs {
  const refTo = (table: string) => (schema === null ? sql.table(table) : sql.id(schema, table))
  const entries = TABLES.map((name) => [name, refTo(prefix + name)] as const)
  return Object.fromEntries(entries) as Record<TableName, RawBuilder<unknown>>
}
