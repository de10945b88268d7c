import type { Migration } from './migration'

/** The indexes by tenant that have the runs of no tenant as well. */
export const ofAllTenants: Migration = {
  version: 17,
  // Who does not know the others reads by these.
  minReader: 17,
  build: ({ schema, name }) => [
    schema.dropIndex(name('runs_tenant_created')),
    schema.dropIndex(name('runs_tenant_status')),
    schema.dropIndex(name('runs_tenant_job')),
  ],
}
