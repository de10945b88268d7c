import type { Migration } from './migration'

/** Until when a worker that is cut off may go on is said by the lease, and that it is late by its last sign of life. */
export const continuation: Migration = {
  version: 13,
  // Who knows the columns reads them with every run.
  minReader: 13,
  build: ({ schema, name }) => [
    schema.alterTable(name('runs')).dropColumn('continuation_state'),
    schema.alterTable(name('runs')).dropColumn('continuation_check_deadline_at'),
  ],
}
