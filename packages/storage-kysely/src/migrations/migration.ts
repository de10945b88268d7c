import type { CompiledQuery, Kysely } from 'kysely'
import type { TableName } from '../tables'

export interface MigrationContext {
  readonly schema: Kysely<unknown>['schema']
  /** The physical name of a table, or of an index on it. */
  readonly name: (table: TableName | `${string}_${string}`) => string
}

/** One step of the schema. Append-only: a released migration never changes. */
export interface Migration {
  readonly version: number
  /** The oldest version whose code can still work with the tables after this migration. */
  readonly minReader: number
  build(context: MigrationContext): readonly { compile(): CompiledQuery }[]
}
