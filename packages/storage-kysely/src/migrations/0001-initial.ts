import { type ColumnDefinitionBuilder, type CreateTableBuilder, sql } from 'kysely'
import type { Migration, MigrationContext } from './migration'

const notNull = (column: ColumnDefinitionBuilder) => column.notNull()
const counter = (column: ColumnDefinitionBuilder) => column.notNull().defaultTo(0)

/** The tables of the first version: runs, their labels, steps, logs, events and signals. */
export const initial: Migration = {
  version: 1,
  minReader: 1,
  build: (context) => [
    runs(context),
    ...runIndexes(context),
    ...labels(context),
    ...steps(context),
    ...logs(context),
    events(context),
    ...signals(context),
  ],
}

function runs({ schema, name }: MigrationContext) {
  const identity = schema
    .createTable(name('runs'))
    .addColumn('id', 'text', (column) => column.primaryKey().notNull())
    .addColumn('tenant', 'text', (column) => column.notNull().defaultTo(''))
    .addColumn('job_name', 'text', notNull)
    .addColumn('job_version', 'text')
    .addColumn('payload', 'text')
    .addColumn('status', 'text', notNull)
    .addColumn('idempotency_key', 'text')
    .addColumn('concurrency_key', 'text')
    .addColumn('concurrency_limit', 'integer', (column) => column.notNull().defaultTo(1))
    .addColumn('concurrency_slot', 'integer')
    .addColumn('hold_key_while_waiting', 'integer', counter)
    .addColumn('priority', 'integer', counter)
    .addColumn('available_at', 'text')
    .addColumn('waiting_for', 'text')
    .addColumn('current_step_index', 'integer', counter)
    .addColumn('progress', 'text')
    .addColumn('output', 'text')
    .addColumn('error', 'text')
    .addColumn('error_detail', 'text')
  return runChecks(clusterColumns(runTimes(runCounters(identity)))).modifyEnd(sql`strict`)
}

function runCounters<T extends string, C extends string>(table: CreateTableBuilder<T, C>) {
  return table
    .addColumn('version', 'integer', (column) => column.notNull().defaultTo(1))
    .addColumn('attempt', 'integer', (column) => column.notNull().defaultTo(1))
    .addColumn('attempt_base', 'integer', counter)
    .addColumn('crash_count', 'integer', counter)
    .addColumn('assignments', 'integer', counter)
    .addColumn('owner_id', 'text')
    .addColumn('claim_token', 'text')
    .addColumn('lease_epoch', 'integer', counter)
    .addColumn('lease_until', 'text')
    .addColumn('leader_epoch', 'integer')
    .addColumn('commit_no', 'integer', counter)
    .addColumn('wakes', 'integer', counter)
    .addColumn('last_event_sequence', 'integer', counter)
}

function runTimes<T extends string, C extends string>(table: CreateTableBuilder<T, C>) {
  return table
    .addColumn('cancel_requested_at', 'text')
    .addColumn('timeout_ms', 'integer')
    .addColumn('deadline_at', 'text')
    .addColumn('parent_run_id', 'text')
    .addColumn('schedule_id', 'text')
    .addColumn('scheduled_for', 'text')
    .addColumn('heartbeat_at', 'text')
    .addColumn('created_at', 'text', notNull)
    .addColumn('updated_at', 'text', notNull)
    .addColumn('started_at', 'text')
    .addColumn('finished_at', 'text')
}

function clusterColumns<T extends string, C extends string>(table: CreateTableBuilder<T, C>) {
  return table
    .addColumn('assigned_worker_id', 'text')
    .addColumn('assigned_at', 'text')
    .addColumn('continuation_state', 'text')
    .addColumn('continuation_check_deadline_at', 'text')
    .addColumn('log_ref', 'text')
}

function runChecks<T extends string, C extends string>(table: CreateTableBuilder<T, C>) {
  return table
    .addCheckConstraint('running_has_lease', sql`(status = 'running') = (lease_until is not null)`)
    .addCheckConstraint(
      'ended_is_finished',
      sql`(status in ('completed', 'failed', 'timed_out', 'cancelled')) = (finished_at is not null)`,
    )
}

function runIndexes({ schema, name }: MigrationContext) {
  const index = (suffix: string) => schema.createIndex(name(`runs_${suffix}`)).on(name('runs'))
  const pending = sql<boolean>`status = 'pending'`
  return [
    index('idempotency').unique().columns(['tenant', 'job_name', 'idempotency_key']).where(present('idempotency_key')),
    index('slot')
      .unique()
      .columns(['tenant', 'concurrency_key', 'concurrency_slot'])
      .where(present('concurrency_slot')),
    index('schedule').unique().columns(['schedule_id', 'scheduled_for']).where(present('schedule_id')),
    index('claim').columns(['priority desc', 'available_at', 'id']).where(pending),
    index('due').columns(['job_name', 'available_at']).where(pending),
    index('running').columns(['owner_id']).where(sql<boolean>`status = 'running'`),
    index('status_key').columns(['status', 'concurrency_key']),
    index('status_created').columns(['status', 'created_at']),
    index('created').columns(['created_at', 'id']),
    index('finished').columns(['finished_at', 'id']).where(present('finished_at')),
    index('parent').columns(['parent_run_id']).where(present('parent_run_id')),
  ]
}

function labels({ schema, name }: MigrationContext) {
  return [
    schema
      .createTable(name('run_labels'))
      .addColumn('run_id', 'text', notNull)
      .addColumn('name', 'text', notNull)
      .addColumn('value', 'text', notNull)
      .addPrimaryKeyConstraint('labels_key', ['run_id', 'name'])
      .modifyEnd(sql`strict, without rowid`),
    schema.createIndex(name('run_labels_value')).on(name('run_labels')).columns(['name', 'value', 'run_id']),
  ]
}

function steps({ schema, name }: MigrationContext) {
  const table = schema
    .createTable(name('steps'))
    .addColumn('id', 'text', (column) => column.primaryKey().notNull())
    .addColumn('run_id', 'text', notNull)
    .addColumn('name', 'text', notNull)
    .addColumn('index', 'integer', notNull)
    .addColumn('kind', 'text', notNull)
    .addColumn('status', 'text', notNull)
    .addColumn('attempt', 'integer', notNull)
    .addColumn('output', 'text')
    .addColumn('error', 'text')
    .addColumn('error_detail', 'text')
    .addColumn('checkpoint', 'text')
    .addColumn('wait_name', 'text')
    .addColumn('due_at', 'text')
    .addColumn('lease_epoch', 'integer', notNull)
    .addColumn('claim_token', 'text', notNull)
    .addColumn('started_at', 'text', notNull)
    .addColumn('completed_at', 'text')
    .modifyEnd(sql`strict`)
  const index = (suffix: string) => schema.createIndex(name(`steps_${suffix}`)).on(name('steps'))
  return [
    table,
    index('index').columns(['run_id', 'index']),
    index('live_name').unique().columns(['run_id', 'name']).where(sql<boolean>`status <> 'failed'`),
  ]
}

function logs({ schema, name }: MigrationContext) {
  return [
    schema
      .createTable(name('logs'))
      .addColumn('id', 'text', (column) => column.primaryKey().notNull())
      .addColumn('run_id', 'text', notNull)
      .addColumn('step_name', 'text')
      .addColumn('level', 'text', notNull)
      .addColumn('message', 'text', notNull)
      .addColumn('data', 'text')
      .addColumn('timestamp', 'text', notNull)
      .modifyEnd(sql`strict`),
    schema.createIndex(name('logs_run')).on(name('logs')).columns(['run_id', 'timestamp']),
  ]
}

function events({ schema, name }: MigrationContext) {
  return schema
    .createTable(name('run_events'))
    .addColumn('run_id', 'text', notNull)
    .addColumn('seq', 'integer', notNull)
    .addColumn('event_type', 'text', notNull)
    .addColumn('payload', 'text', notNull)
    .addColumn('created_at', 'text', notNull)
    .addPrimaryKeyConstraint('events_key', ['run_id', 'seq'])
    .modifyEnd(sql`strict, without rowid`)
}

function signals({ schema, name }: MigrationContext) {
  return [
    schema
      .createTable(name('signals'))
      .addColumn('run_id', 'text', notNull)
      .addColumn('position', 'integer', notNull)
      .addColumn('name', 'text', notNull)
      .addColumn('payload', 'text')
      .addColumn('dedupe_key', 'text')
      .addColumn('created_at', 'text', notNull)
      .addColumn('consumed_at', 'text')
      .addPrimaryKeyConstraint('signals_key', ['run_id', 'position'])
      .modifyEnd(sql`strict, without rowid`),
    schema
      .createIndex(name('signals_dedupe'))
      .on(name('signals'))
      .unique()
      .columns(['run_id', 'dedupe_key'])
      .where(present('dedupe_key')),
  ]
}

function present(column: string) {
  return sql<boolean>`${sql.ref(column)} is not null`
}
