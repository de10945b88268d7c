import { type RawBuilder, sql } from 'kysely'
import type { Migration, MigrationContext } from './migration'

/** Workers, the jobs that they know, and how the runs that a leader places are found. */
export const cluster: Migration = {
  version: 12,
  // Who does not know the tables claims every job it knows, as one does where nobody leads.
  minReader: 5,
  build: (context) => [workers(context), jobs(context), ...indexes(context)],
}

function workers({ schema, name, types, dialect }: MigrationContext) {
  return schema
    .createTable(name('workers'))
    .addColumn('worker_id', types.text, (column) => column.primaryKey().notNull())
    .addColumn('presence', types.text, (column) => column.notNull())
    .addColumn('capacity', 'integer', (column) => column.notNull())
    .addColumn('placed_jobs', types.json, (column) => column.notNull())
    .addColumn('labels', types.json, (column) => column.notNull())
    .addColumn('code_version', types.text)
    .addColumn('first_beat_at', types.instant, (column) => column.notNull())
    .addColumn('last_beat_at', types.instant, (column) => column.notNull())
    .addColumn('alive_until', types.instant, (column) => column.notNull())
    .modifyEnd(sql.raw(OPTIONS[dialect]))
}

function jobs({ schema, name, types, dialect }: MigrationContext) {
  return schema
    .createTable(name('jobs'))
    .addColumn('name', types.text, (column) => column.notNull())
    .addColumn('version', types.text, (column) => column.notNull())
    .addColumn('code_version', types.text, (column) => column.notNull())
    .addColumn('options', types.json, (column) => column.notNull())
    .addColumn('last_seen_at', types.instant, (column) => column.notNull())
    .addPrimaryKeyConstraint(name('jobs_key'), ['name', 'version', 'code_version'])
    .modifyEnd(sql.raw(OPTIONS[dialect]))
}

function indexes({ schema, name, dialect }: MigrationContext) {
  const index = (suffix: string, where: RawBuilder<boolean>) =>
    schema
      .createIndex(name(`runs_${suffix}`))
      .on(name('runs'))
      .where(where)
  // As for the other indexes on what waits: no other one can answer for it.
  const status = dialect === 'sqlite' ? sql`status` : sql`(status || '')`
  const order = ['priority desc', 'available_at', 'id']
  return [
    // Of who has no tenants nothing is in it.
    index('placing', sql<boolean>`${status} = 'pending' and tenant <> ''`).columns(['job_name', 'tenant', ...order]),
    index('assigned', sql<boolean>`${status} = 'assigned'`).columns(['assigned_worker_id']),
    index('orphaned', sql<boolean>`status = 'orphaned'`).columns(order),
  ]
}

const OPTIONS = { sqlite: 'strict, without rowid', postgres: '' } as const
