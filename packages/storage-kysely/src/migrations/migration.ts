import { type CompiledQuery, type Kysely, type RawBuilder, sql } from 'kysely'
import type { SqlDialect, TableName } from '../dialect'

export interface MigrationContext {
  readonly schema: Kysely<unknown>['schema']
  /** The physical name of a table, of an index on it, or of the function. */
  readonly name: (of: TableName | `${string}_${string}` | 'enqueue') => string
  /** Such a name as it is written in a statement: quoted, and with the schema if one was chosen. */
  readonly written: (of: TableName | 'enqueue') => string
  readonly dialect: SqlDialect['name']
  readonly types: ColumnTypes
  /** Where processes hear of what is due. */
  readonly channel: string
}

/** What the two databases call a column's type. */
export interface ColumnTypes {
  readonly text: RawBuilder<unknown>
  readonly instant: RawBuilder<unknown>
  readonly json: RawBuilder<unknown>
  readonly bigint: RawBuilder<unknown>
}

export const COLUMN_TYPES: Readonly<Record<SqlDialect['name'], ColumnTypes>> = {
  sqlite: { text: sql`text`, instant: sql`text`, json: sql`text`, bigint: sql`integer` },
  // Names and ids sort by their bytes, as they do in SQLite, and compare without the rules of a language.
  postgres: { text: sql`text collate "C"`, instant: sql`timestamptz(3)`, json: sql`json`, bigint: sql`bigint` },
}

/** One step of the schema. Append-only: a released migration never changes. */
export interface Migration {
  readonly version: number
  /** The oldest version whose code can still work with the tables after this migration. */
  readonly minReader: number
  build(context: MigrationContext): readonly { compile(): CompiledQuery }[]
}
