import { CompiledQuery, sql } from 'kysely'
import { createEnqueueFunction } from './0003-enqueue-function'
import type { Migration, MigrationContext } from './migration'

/** Whatever runs are asked for, newest first, there is an index that has them in this order; and a run may be a fork of another. */
export const search: Migration = {
  version: 5,
  // Who does not know the columns of labels would create runs that nobody finds by their labels.
  minReader: 5,
  build: (context) => [
    context.schema.alterTable(context.name('runs')).addColumn('forked_from', context.types.text),
    ...labels(context),
    ...indexes(context),
    ...enqueueFunction(context),
  ],
}

/** A label says itself where its run is in the list. */
function labels({ schema, name, types, written }: MigrationContext) {
  const table = () => schema.alterTable(name('run_labels'))
  const index = (suffix: string) => schema.createIndex(name(`run_labels_${suffix}`)).on(name('run_labels'))
  const ofRun = (column: string) => `(select r.${column} from ${written('runs')} as r where r.id = run_id)`
  const fill = `update ${written('run_labels')} set tenant = ${ofRun('tenant')}, created_at = ${ofRun('created_at')}`
  return [
    table().addColumn('tenant', types.text),
    table().addColumn('created_at', types.instant),
    { compile: () => CompiledQuery.raw(fill) },
    schema.dropIndex(name('run_labels_value')),
    index('value').columns(['name', 'value', 'created_at', 'run_id']),
    index('tenant_value').columns(['tenant', 'name', 'value', 'created_at', 'run_id']),
  ]
}

function indexes({ schema, name, dialect }: MigrationContext) {
  const index = (suffix: string) => schema.createIndex(name(`runs_${suffix}`)).on(name('runs'))
  const code = dialect === 'sqlite' ? sql`json_extract(error_detail, '$.code')` : sql`(error_detail ->> 'code')`
  return [
    index('tenant_created').columns(['tenant', 'created_at', 'id']),
    index('tenant_status').columns(['tenant', 'status', 'created_at', 'id']),
    index('tenant_job').columns(['tenant', 'job_name', 'created_at', 'id']),
    index('job_created').columns(['job_name', 'created_at', 'id']),
    index('error_code').expression(sql`${code}, created_at, id`).where(sql<boolean>`error_detail is not null`),
    schema
      .createIndex(name('steps_waiting'))
      .on(name('steps'))
      .columns(['kind', 'run_id'])
      .where(sql<boolean>`status = 'waiting'`),
  ]
}

function enqueueFunction(context: MigrationContext) {
  if (context.dialect !== 'postgres') return []
  const text = createEnqueueFunction(context, ({ table }) => {
    return `insert into ${table('run_labels')} (run_id, name, value, tenant, created_at)
        select run_id, l.key, l.value, owner, created from jsonb_each_text(labels) as l;`
  })
  return [{ compile: () => CompiledQuery.raw(text) }]
}
