import type { Migration } from './migration'

/** The logs of a run in the order of writing, in which they are read page by page: by their times, each page sorted them all. */
export const logsAsWritten: Migration = {
  version: 15,
  // Who does not know the index reads what it needs as before.
  minReader: 13,
  build: ({ schema, name, dialect }) => [
    schema.dropIndex(name('logs_run')),
    schema
      .createIndex(name('logs_written'))
      .on(name('logs'))
      // An index of SQLite ends with the number of the row.
      .columns(dialect === 'sqlite' ? ['run_id'] : ['run_id', 'write_order']),
  ],
}
