import { sql } from 'kysely'
import type { Migration, MigrationContext } from './migration'

/** Messages, and which jobs want them. */
export const inbox: Migration = {
  version: 7,
  // Who does not know the tables has no messages.
  minReader: 5,
  build: (context) => [...inboxTable(context), subscriptions(context)],
}

function inboxTable({ schema, name, types, dialect }: MigrationContext) {
  const index = (suffix: string) => schema.createIndex(name(`inbox_${suffix}`)).on(name('inbox'))
  return [
    schema
      .createTable(name('inbox'))
      .addColumn('id', types.text, (column) => column.primaryKey().notNull())
      .addColumn('tenant', types.text, (column) => column.notNull())
      .addColumn('type', types.text, (column) => column.notNull())
      .addColumn('payload', types.json)
      .addColumn('dedupe_key', types.text)
      .addColumn('available_at', types.instant, (column) => column.notNull())
      .addColumn('created_at', types.instant, (column) => column.notNull())
      .addColumn('processed_at', types.instant)
      .addColumn('wanted', 'integer', (column) => column.notNull().defaultTo(0))
      .addColumn('round', 'integer', (column) => column.notNull().defaultTo(0))
      .addColumn('deliver_token', types.text)
      .modifyEnd(sql.raw(OPTIONS[dialect])),
    index('dedupe').unique().columns(['tenant', 'dedupe_key']).where(sql<boolean>`dedupe_key is not null`),
    index('waiting').columns(['available_at', 'id']).where(sql<boolean>`processed_at is null`),
    index('processed').columns(['processed_at', 'created_at']),
    index('created').columns(['created_at', 'id']),
  ]
}

function subscriptions({ schema, name, types, dialect }: MigrationContext) {
  return schema
    .createTable(name('subscriptions'))
    .addColumn('job_name', types.text, (column) => column.notNull())
    .addColumn('type', types.text, (column) => column.notNull())
    .addColumn('definition', types.json, (column) => column.notNull())
    .addPrimaryKeyConstraint(name('subscriptions_key'), ['type', 'job_name'])
    .modifyEnd(sql.raw(OPTIONS[dialect]))
}

const OPTIONS = { sqlite: 'strict, without rowid', postgres: '' } as const
