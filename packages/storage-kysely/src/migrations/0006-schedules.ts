import { sql } from 'kysely'
import type { Migration, MigrationContext } from './migration'

/** Who leads over what, and what creates runs at instants. */
export const schedules: Migration = {
  version: 6,
  // Who does not know the tables has no schedules.
  minReader: 5,
  build: (context) => [leaders(context), ...scheduleTable(context), openRuns(context)],
}

function leaders({ schema, name, types, dialect }: MigrationContext) {
  return schema
    .createTable(name('leaders'))
    .addColumn('name', types.text, (column) => column.primaryKey().notNull())
    .addColumn('worker_id', types.text, (column) => column.notNull())
    .addColumn('epoch', types.bigint, (column) => column.notNull())
    .addColumn('lead_until', types.instant, (column) => column.notNull())
    .modifyEnd(sql.raw(OPTIONS[dialect]))
}

function scheduleTable({ schema, name, types, dialect }: MigrationContext) {
  const index = (suffix: string) => schema.createIndex(name(`schedules_${suffix}`)).on(name('schedules'))
  return [
    schema
      .createTable(name('schedules'))
      .addColumn('id', types.text, (column) => column.primaryKey().notNull())
      .addColumn('tenant', types.text, (column) => column.notNull())
      .addColumn('name', types.text, (column) => column.notNull())
      .addColumn('source', types.text)
      .addColumn('job_name', types.text, (column) => column.notNull())
      .addColumn('payload', types.json)
      .addColumn('definition', types.json, (column) => column.notNull())
      .addColumn('overlap', types.text, (column) => column.notNull())
      .addColumn('version', 'integer', (column) => column.notNull().defaultTo(1))
      .addColumn('paused_because', types.text)
      .addColumn('fired_until', types.instant, (column) => column.notNull())
      .addColumn('next_at', types.instant)
      .addColumn('due_at', types.instant)
      .addColumn('fire_token', types.text)
      .addColumn('fired', types.bigint, (column) => column.notNull().defaultTo(0))
      .addColumn('missed', types.bigint, (column) => column.notNull().defaultTo(0))
      .addColumn('created_at', types.instant, (column) => column.notNull())
      .addColumn('updated_at', types.instant, (column) => column.notNull())
      .addColumn('ended_at', types.instant)
      .modifyEnd(sql.raw(OPTIONS[dialect])),
    index('name').unique().columns(['tenant', 'name']),
    index('due').columns(['due_at', 'id']).where(sql<boolean>`due_at is not null`),
  ]
}

/** The runs of a schedule that have not ended, however many have. */
function openRuns({ schema, name }: MigrationContext) {
  return schema
    .createIndex(name('runs_schedule_open'))
    .on(name('runs'))
    .columns(['schedule_id'])
    .where(sql<boolean>`schedule_id is not null and finished_at is null`)
}

const OPTIONS = { sqlite: 'strict, without rowid', postgres: '' } as const
