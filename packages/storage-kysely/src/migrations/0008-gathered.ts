import { sql } from 'kysely'
import type { Migration } from './migration'

/** Messages that wait for others before they make a run together. */
export const gathered: Migration = {
  version: 8,
  // Who does not know the table delivers no messages.
  minReader: 5,
  build: ({ schema, name, types, dialect }) => [
    schema
      .createTable(name('gathered'))
      .addColumn('id', types.text, (column) => column.primaryKey().notNull())
      .addColumn('job_name', types.text, (column) => column.notNull())
      .addColumn('tenant', types.text, (column) => column.notNull())
      .addColumn('key', types.text, (column) => column.notNull())
      .addColumn('mode', types.text, (column) => column.notNull())
      .addColumn('max', 'integer', (column) => column.notNull())
      .addColumn('payload', types.json)
      .addColumn('due_at', types.instant, (column) => column.notNull())
      .addColumn('created_at', types.instant, (column) => column.notNull())
      .addColumn('place', types.bigint, (column) => column.notNull())
      .addColumn('release_token', types.text)
      .modifyEnd(sql.raw({ sqlite: 'strict, without rowid', postgres: '' }[dialect])),
  ],
}
