import { type RawBuilder, sql } from 'kysely'
import type { Migration } from './migration'

const HAS_TENANT: RawBuilder<boolean> = sql`tenant <> ''`

/** The indexes by tenant have the runs of tenants only: who has none wrote into three more of them whenever a run changed. */
export const ofTenants: Migration = {
  version: 16,
  // Who does not know reads by the ones that are gone.
  minReader: 16,
  build({ schema, name }) {
    const index = (suffix: `of_tenant${string}`, columns: readonly string[]) =>
      schema
        .createIndex(name(`runs_${suffix}`))
        .on(name('runs'))
        .columns(['tenant', ...columns, 'created_at', 'id'])
        .where(HAS_TENANT)
    return [
      index('of_tenant', []),
      index('of_tenant_status', ['status']),
      index('of_tenant_job', ['job_name']),
      // Last: until then runs can be read.
      schema.dropIndex(name('runs_tenant_created')),
      schema.dropIndex(name('runs_tenant_status')),
      schema.dropIndex(name('runs_tenant_job')),
    ]
  },
}
