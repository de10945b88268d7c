import { sql } from 'kysely'
import type { Migration, MigrationContext } from './migration'

/** Names of an archive that no run refers to, what operators did, and what they have set. */
export const archiveAuditSettings: Migration = {
  version: 10,
  // Who does not know the tables archives nothing, and nobody says to it who it is.
  minReader: 5,
  build: (context) => [strays(context), ...audit(context), settings(context)],
}

function strays({ schema, name, types, dialect }: MigrationContext) {
  return schema
    .createTable(name('archive_strays'))
    .addColumn('name', types.text, (column) => column.primaryKey().notNull())
    .addColumn('announced_at', types.instant, (column) => column.notNull())
    .addColumn('is_given_up', 'integer', (column) => column.notNull().defaultTo(0))
    .modifyEnd(sql.raw(OPTIONS[dialect]))
}

function audit({ schema, name, types, dialect }: MigrationContext) {
  const index = (suffix: string) => schema.createIndex(name(`audit_${suffix}`)).on(name('audit'))
  return [
    schema
      .createTable(name('audit'))
      .addColumn('id', types.text, (column) => column.primaryKey().notNull())
      .addColumn('at', types.instant, (column) => column.notNull())
      .addColumn('tenant', types.text, (column) => column.notNull())
      .addColumn('actor', types.text, (column) => column.notNull())
      .addColumn('action', types.text, (column) => column.notNull())
      .addColumn('target_kind', types.text, (column) => column.notNull())
      .addColumn('target', types.text, (column) => column.notNull())
      .addColumn('before', types.json)
      .addColumn('after', types.json)
      .modifyEnd(sql.raw(OPTIONS[dialect])),
    index('at').columns(['at', 'id']),
    index('target').columns(['target', 'at', 'id']),
  ]
}

function settings({ schema, name, types, dialect }: MigrationContext) {
  return schema
    .createTable(name('settings'))
    .addColumn('name', types.text, (column) => column.primaryKey().notNull())
    .addColumn('value', types.json, (column) => column.notNull())
    .addColumn('updated_at', types.instant, (column) => column.notNull())
    .modifyEnd(sql.raw(OPTIONS[dialect]))
}

const OPTIONS = { sqlite: 'strict, without rowid', postgres: '' } as const
