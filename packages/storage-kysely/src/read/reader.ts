import type { CompiledQuery } from 'kysely'
import type { Rows } from '../dialect'

/** Where reads are sent. */
export interface Reader {
  read(query: CompiledQuery): Promise<Rows>
}
