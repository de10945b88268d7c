import { sql } from 'kysely'
import type { Migration } from './migration'

/** Which run is put off while more of its kind are triggered. */
export const debounce: Migration = {
  version: 9,
  // Who does not know the table puts nothing off.
  minReader: 5,
  build: ({ schema, name, types, dialect }) => [
    schema
      .createTable(name('debounced_runs'))
      .addColumn('tenant', types.text, (column) => column.notNull())
      .addColumn('job_name', types.text, (column) => column.notNull())
      .addColumn('key', types.text, (column) => column.notNull())
      .addColumn('run_id', types.text, (column) => column.notNull())
      .addPrimaryKeyConstraint(name('debounced_runs_key'), ['tenant', 'job_name', 'key'])
      .modifyEnd(sql.raw({ sqlite: 'strict, without rowid', postgres: '' }[dialect])),
    schema.createIndex(name('debounced_runs_run')).on(name('debounced_runs')).columns(['run_id']),
  ],
}
