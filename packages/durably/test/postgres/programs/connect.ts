import type { Dialect } from 'kysely'
import { postgres } from '../../../src/postgres'

export function connect(url: string): Dialect {
  return postgres({ connectionString: url })
}
