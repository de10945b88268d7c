import { type RawBuilder, sql } from 'kysely'
import type { Migration } from './migration'

const HAS_TENANT: RawBuilder<boolean> = sql`tenant <> ''`

/**
 * The indexes by tenant have the runs of tenants only: who has none wrote into three more of them whenever a run changed. Those
 * that were there go with the next migration: who builds an index and then locks the table waits for whoever waits for the index.
 */
export const ofTenants: Migration = {
  version: 16,
  // Who does not know them reads by the ones that are there still.
  minReader: 15,
  build({ schema, name }) {
    const index = (suffix: `of_tenant${string}`, columns: readonly string[]) =>
      schema
        .createIndex(name(`runs_${suffix}`))
        .on(name('runs'))
        .columns(['tenant', ...columns, 'created_at', 'id'])
        .where(HAS_TENANT)
    return [index('of_tenant', []), index('of_tenant_status', ['status']), index('of_tenant_job', ['job_name'])]
  },
}
