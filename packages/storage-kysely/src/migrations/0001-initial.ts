import { type ColumnDefinitionBuilder, type CreateTableBuilder, sql } from 'kysely'
import type { ColumnTypes, Migration, MigrationContext } from './migration'

const notNull = (column: ColumnDefinitionBuilder) => column.notNull()
const counter = (column: ColumnDefinitionBuilder) => column.notNull().defaultTo(0)

/** Updates of running runs stay on their page, and dead rows do not gather between finished ones. */
const RUNS_ON_POSTGRES = `with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
  autovacuum_analyze_scale_factor = 0.02, autovacuum_analyze_threshold = 500)`

const OPTIONS = {
  runs: { sqlite: 'strict', postgres: RUNS_ON_POSTGRES },
  withId: { sqlite: 'strict', postgres: '' },
  withoutId: { sqlite: 'strict, without rowid', postgres: '' },
} as const

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

function runs(context: MigrationContext) {
  const { schema, name, types, dialect } = context
  const identity = schema
    .createTable(name('runs'))
    .addColumn('id', types.text, (column) => column.primaryKey().notNull())
    .addColumn('tenant', types.text, (column) => column.notNull().defaultTo(''))
    .addColumn('job_name', types.text, notNull)
    .addColumn('job_version', types.text)
    .addColumn('payload', types.json)
    .addColumn('status', types.text, notNull)
    .addColumn('idempotency_key', types.text)
    .addColumn('concurrency_key', types.text)
    .addColumn('concurrency_limit', 'integer', (column) => column.notNull().defaultTo(1))
    .addColumn('concurrency_slot', 'integer')
    .addColumn('hold_key_while_waiting', 'integer', counter)
    .addColumn('priority', 'integer', counter)
    .addColumn('available_at', types.instant)
    .addColumn('waiting_for', types.json)
    .addColumn('current_step_index', 'integer', counter)
    .addColumn('progress', types.json)
    .addColumn('output', types.json)
    .addColumn('error', types.text)
    .addColumn('error_detail', types.json)
  return runChecks(clusterColumns(runTimes(runCounters(identity, types), types), types)).modifyEnd(
    sql.raw(OPTIONS.runs[dialect]),
  )
}

function runCounters<T extends string, C extends string>(table: CreateTableBuilder<T, C>, types: ColumnTypes) {
  return table
    .addColumn('version', 'integer', (column) => column.notNull().defaultTo(1))
    .addColumn('attempt', 'integer', (column) => column.notNull().defaultTo(1))
    .addColumn('attempt_base', 'integer', counter)
    .addColumn('crash_count', 'integer', counter)
    .addColumn('assignments', 'integer', counter)
    .addColumn('owner_id', types.text)
    .addColumn('claim_token', types.text)
    .addColumn('lease_epoch', 'integer', counter)
    .addColumn('lease_until', types.instant)
    .addColumn('leader_epoch', 'integer')
    .addColumn('commit_no', 'integer', counter)
    .addColumn('wakes', 'integer', counter)
    .addColumn('last_event_sequence', 'integer', counter)
}

function runTimes<T extends string, C extends string>(table: CreateTableBuilder<T, C>, types: ColumnTypes) {
  return table
    .addColumn('cancel_requested_at', types.instant)
    .addColumn('timeout_ms', types.bigint)
    .addColumn('deadline_at', types.instant)
    .addColumn('parent_run_id', types.text)
    .addColumn('schedule_id', types.text)
    .addColumn('scheduled_for', types.instant)
    .addColumn('heartbeat_at', types.instant)
    .addColumn('created_at', types.instant, notNull)
    .addColumn('updated_at', types.instant, notNull)
    .addColumn('started_at', types.instant)
    .addColumn('finished_at', types.instant)
}

function clusterColumns<T extends string, C extends string>(table: CreateTableBuilder<T, C>, types: ColumnTypes) {
  return table
    .addColumn('assigned_worker_id', types.text)
    .addColumn('assigned_at', types.instant)
    .addColumn('continuation_state', types.text)
    .addColumn('continuation_check_deadline_at', types.instant)
    .addColumn('log_ref', types.text)
}

function runChecks<T extends string, C extends string>(table: CreateTableBuilder<T, C>) {
  return table
    .addCheckConstraint('running_has_lease', sql`(status = 'running') = (lease_until is not null)`)
    .addCheckConstraint(
      'ended_is_finished',
      sql`(status in ('completed', 'failed', 'timed_out', 'cancelled')) = (finished_at is not null)`,
    )
}

function runIndexes(context: MigrationContext) {
  const { schema, name } = context
  const index = (suffix: string) => schema.createIndex(name(`runs_${suffix}`)).on(name('runs'))
  return [
    index('idempotency').unique().columns(['tenant', 'job_name', 'idempotency_key']).where(present('idempotency_key')),
    index('slot')
      .unique()
      .columns(['tenant', 'concurrency_key', 'concurrency_slot'])
      .where(present('concurrency_slot')),
    index('schedule').unique().columns(['schedule_id', 'scheduled_for']).where(present('schedule_id')),
    ...claimIndexes(context),
    index('due').columns(['job_name', 'available_at']).where(waitingOn(context.dialect)),
    index('running').columns(['owner_id']).where(sql<boolean>`status = 'running'`),
    index('status_key').columns(['status', 'concurrency_key']),
    index('status_created').columns(['status', 'created_at']),
    index('created').columns(['created_at', 'id']),
    index('finished').columns(['finished_at', 'id']).where(present('finished_at')),
    index('parent').columns(['parent_run_id']).where(present('parent_run_id')),
  ]
}

/** An expression of its own on Postgres: no other index can answer for it, whatever the statistics say. */
function waitingOn(dialect: MigrationContext['dialect']) {
  return dialect === 'sqlite' ? sql<boolean>`status = 'pending'` : sql<boolean>`(status || '') = 'pending'`
}

/** Postgres keeps runs with a key apart, so that those that a busy key holds back are not in the way of the others. */
function claimIndexes({ schema, name, dialect }: MigrationContext) {
  const index = (suffix: string) => schema.createIndex(name(`runs_${suffix}`)).on(name('runs'))
  const order = ['priority desc', 'available_at', 'id']
  const isWaiting = waitingOn(dialect)
  if (dialect === 'sqlite') return [index('claim').columns(order).where(isWaiting)]
  return [
    index('claim').columns(order).where(sql<boolean>`${isWaiting} and concurrency_key is null`),
    index('claim_keyed').columns(order).where(sql<boolean>`${isWaiting} and concurrency_key is not null`),
    index('claim_by_key')
      .columns(['tenant', 'concurrency_key', ...order])
      .where(sql<boolean>`${isWaiting} and concurrency_key is not null`),
  ]
}

function labels({ schema, name, types, dialect }: MigrationContext) {
  return [
    schema
      .createTable(name('run_labels'))
      .addColumn('run_id', types.text, notNull)
      .addColumn('name', types.text, notNull)
      .addColumn('value', types.text, notNull)
      .addPrimaryKeyConstraint(name('run_labels_key'), ['run_id', 'name'])
      .modifyEnd(sql.raw(OPTIONS.withoutId[dialect])),
    schema.createIndex(name('run_labels_value')).on(name('run_labels')).columns(['name', 'value', 'run_id']),
  ]
}

function steps({ schema, name, types, dialect }: MigrationContext) {
  const table = schema
    .createTable(name('steps'))
    .addColumn('id', types.text, (column) => column.primaryKey().notNull())
    .addColumn('run_id', types.text, notNull)
    .addColumn('name', types.text, notNull)
    .addColumn('index', 'integer', notNull)
    .addColumn('kind', types.text, notNull)
    .addColumn('status', types.text, notNull)
    .addColumn('attempt', 'integer', notNull)
    .addColumn('output', types.json)
    .addColumn('error', types.text)
    .addColumn('error_detail', types.json)
    .addColumn('checkpoint', types.json)
    .addColumn('wait_name', types.text)
    .addColumn('due_at', types.instant)
    .addColumn('lease_epoch', 'integer', notNull)
    .addColumn('claim_token', types.text, notNull)
    .addColumn('started_at', types.instant, notNull)
    .addColumn('completed_at', types.instant)
    .$call(withWriteOrder(dialect))
    .modifyEnd(sql.raw(OPTIONS.withId[dialect]))
  const index = (suffix: string) => schema.createIndex(name(`steps_${suffix}`)).on(name('steps'))
  return [
    table,
    index('index').columns(['run_id', 'index']),
    index('live_name').unique().columns(['run_id', 'name']).where(sql<boolean>`status <> 'failed'`),
  ]
}

function logs({ schema, name, types, dialect }: MigrationContext) {
  return [
    schema
      .createTable(name('logs'))
      .addColumn('id', types.text, (column) => column.primaryKey().notNull())
      .addColumn('run_id', types.text, notNull)
      .addColumn('step_name', types.text)
      .addColumn('level', types.text, notNull)
      .addColumn('message', types.text, notNull)
      .addColumn('data', types.json)
      .addColumn('timestamp', types.instant, notNull)
      .$call(withWriteOrder(dialect))
      .modifyEnd(sql.raw(OPTIONS.withId[dialect])),
    schema.createIndex(name('logs_run')).on(name('logs')).columns(['run_id', 'timestamp']),
  ]
}

function events({ schema, name, types, dialect }: MigrationContext) {
  return schema
    .createTable(name('run_events'))
    .addColumn('run_id', types.text, notNull)
    .addColumn('seq', 'integer', notNull)
    .addColumn('event_type', types.text, notNull)
    .addColumn('payload', types.json, notNull)
    .addColumn('created_at', types.instant, notNull)
    .addPrimaryKeyConstraint(name('run_events_key'), ['run_id', 'seq'])
    .modifyEnd(sql.raw(OPTIONS.withoutId[dialect]))
}

function signals({ schema, name, types, dialect }: MigrationContext) {
  return [
    schema
      .createTable(name('signals'))
      .addColumn('run_id', types.text, notNull)
      .addColumn('position', 'integer', notNull)
      .addColumn('name', types.text, notNull)
      .addColumn('payload', types.json)
      .addColumn('dedupe_key', types.text)
      .addColumn('created_at', types.instant, notNull)
      .addColumn('consumed_at', types.instant)
      .addPrimaryKeyConstraint(name('signals_key'), ['run_id', 'position'])
      .modifyEnd(sql.raw(OPTIONS.withoutId[dialect])),
    schema
      .createIndex(name('signals_dedupe'))
      .on(name('signals'))
      .unique()
      .columns(['run_id', 'dedupe_key'])
      .where(present('dedupe_key')),
  ]
}

/** SQLite's tables have their `rowid`. One holder writes at a time, so the numbers of a run grow in the order of writing. */
function withWriteOrder(dialect: MigrationContext['dialect']) {
  return <T extends string, C extends string>(table: CreateTableBuilder<T, C>) =>
    dialect === 'sqlite'
      ? table
      : table.addColumn('write_order', 'bigint', (column) => column.generatedAlwaysAsIdentity())
}

function present(column: string) {
  return sql<boolean>`${sql.ref(column)} is not null`
}
