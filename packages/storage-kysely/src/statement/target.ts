import type { CompiledQuery } from 'kysely'
import type { Rows } from '../dialect'

/** Takes a list that happens wholly or not at all. */
export interface WriteTarget {
  write(list: readonly CompiledQuery[]): Promise<readonly Rows[]>
  /** As `write`, within this very call; `null`: it is for `write`, which also says what was wrong. */
  writeNow?(list: readonly CompiledQuery[]): readonly Rows[] | null
  /**
   * How long one try waits for what others hold: there will be another one, and meanwhile it keeps a connection from those
   * who have nothing to do with it. In a transaction there is none, and it waits as that does.
   */
  readonly lockMs?: number
}

/** How statements get to the database: on their own, or inside a transaction that is already open. */
export interface StatementTarget extends WriteTarget {
  read(query: CompiledQuery): Promise<Rows>
}
