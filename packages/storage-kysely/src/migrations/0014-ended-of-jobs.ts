import { sql } from 'kysely'
import type { Migration } from './migration'

/** The ended runs of one job, of each status, by their end: whoever removes or counts those of a job passes no others. */
export const endedOfJobs: Migration = {
  version: 14,
  // Who does not know the index reads what it needs as before.
  minReader: 13,
  build: ({ schema, name }) => [
    // A run is in it from its end on: a trigger pays nothing.
    schema
      .createIndex(name('runs_job_finished'))
      .on(name('runs'))
      .columns(['job_name', 'status', 'finished_at', 'id'])
      .where(sql<boolean>`finished_at is not null`),
  ],
}
