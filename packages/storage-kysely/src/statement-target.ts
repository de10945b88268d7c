import type { CompiledQuery } from 'kysely'
import type { Rows } from './drivers/hooks'

/** Takes a list that happens wholly or not at all. */
export interface WriteTarget {
  write(list: readonly CompiledQuery[]): Promise<readonly Rows[]>
}

/** How statements get to the database: on their own, or inside a transaction that is already open. */
export interface StatementTarget extends WriteTarget {
  read(query: CompiledQuery): Promise<Rows>
}
