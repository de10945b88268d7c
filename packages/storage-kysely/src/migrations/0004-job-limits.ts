import { sql } from 'kysely'
import type { Migration } from './migration'

/** What is kept of jobs for all processes together: pauses, and when runs began under a rate. */
export const jobLimits: Migration = {
  version: 4,
  // Who does not know the tables claims without them, as one does whose jobs have no limits there.
  minReader: 2,
  build: ({ schema, name, types, dialect }) => [
    schema
      .createTable(name('paused_jobs'))
      .addColumn('job_name', types.text, (column) => column.primaryKey().notNull())
      .addColumn('paused_at', types.instant, (column) => column.notNull())
      .modifyEnd(sql.raw(OPTIONS[dialect])),
    schema
      .createTable(name('job_starts'))
      .addColumn('job_name', types.text, (column) => column.notNull())
      .addColumn('nth', types.bigint, (column) => column.notNull())
      .addColumn('started_at', types.instant, (column) => column.notNull())
      .addPrimaryKeyConstraint(name('job_starts_key'), ['job_name', 'nth'])
      .modifyEnd(sql.raw(OPTIONS[dialect])),
  ],
}

const OPTIONS = { sqlite: 'strict, without rowid', postgres: '' } as const
