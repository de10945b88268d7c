import { sql } from 'kysely'
import type { Migration, MigrationContext } from './migration'

/** Runs counted by the hour, which trace a run belongs to, and an index of those that wait for a retry or a decision. */
export const statistics: Migration = {
  version: 11,
  // Who does not know them counts nothing, and creates runs of no trace.
  minReader: 5,
  build: (context) => [
    context.schema.alterTable(context.name('runs')).addColumn('trace_parent', context.types.text),
    hours(context),
    place(context),
    ...waitingKinds(context),
  ],
}

function hours({ schema, name, types, dialect }: MigrationContext) {
  return schema
    .createTable(name('statistics'))
    .addColumn('tenant_scope', types.text, (column) => column.notNull())
    .addColumn('job_scope', types.text, (column) => column.notNull())
    .addColumn('hour', types.instant, (column) => column.notNull())
    .addColumn('started', types.bigint, (column) => column.notNull())
    .addColumn('completed', types.bigint, (column) => column.notNull())
    .addColumn('failed', types.bigint, (column) => column.notNull())
    .addColumn('timed_out', types.bigint, (column) => column.notNull())
    .addColumn('cancelled', types.bigint, (column) => column.notNull())
    .addColumn('durations', types.json, (column) => column.notNull())
    .addColumn('waits', types.json, (column) => column.notNull())
    .addPrimaryKeyConstraint(name('statistics_key'), ['tenant_scope', 'job_scope', 'hour'])
    .modifyEnd(sql.raw(OPTIONS[dialect]))
}

/** One row: up to which end all are counted. */
function place({ schema, name, types, dialect }: MigrationContext) {
  return schema
    .createTable(name('statistics_place'))
    .addColumn('id', 'integer', (column) => column.primaryKey().notNull())
    .addColumn('finished_at', types.instant, (column) => column.notNull())
    .addColumn('run_id', types.text, (column) => column.notNull())
    .addColumn('token', types.text, (column) => column.notNull())
    .modifyEnd(sql.raw(OPTIONS[dialect]))
}

/** They are few, and whoever counts them would walk through all that are pending: which takes Postgres its time. */
function waitingKinds({ schema, name, dialect }: MigrationContext) {
  if (dialect === 'sqlite') return []
  const kind = sql`(waiting_for ->> 'kind')`
  return [
    schema
      .createIndex(name('runs_waiting_kind'))
      .on(name('runs'))
      .expression(sql`${kind}, tenant, created_at, id`)
      .where(sql<boolean>`status = 'pending' and ${kind} in ('retry', 'unpark')`),
  ]
}

const OPTIONS = { sqlite: 'strict, without rowid', postgres: '' } as const
