import type { Migration } from './migration'

/** The logs of a run in the order of writing, in which they are read page by page: by their times, each page sorted them all. */
export const logsAsWritten: Migration = {
  version: 15,
  // Since then logs leave the database after their run refers to an archive: who does not know that reads them twice.
  minReader: 15,
  build: ({ schema, name, dialect }) => [
    schema
      .createIndex(name('logs_written'))
      .on(name('logs'))
      // An index of SQLite ends with the number of the row.
      .columns(dialect === 'sqlite' ? ['run_id'] : ['run_id', 'write_order']),
    // Last: until then logs can be read.
    schema.dropIndex(name('logs_run')),
  ],
}
