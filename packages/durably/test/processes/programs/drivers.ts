import type { Dialect } from 'kysely'
import { betterSqlite3 } from '../../../src/better-sqlite3'
import { libsql } from '../../../src/libsql'

const OPEN = {
  libsql: (file: string) => libsql(`file:${file}`),
  'better-sqlite3': (file: string) => betterSqlite3(file),
} as const

export type DriverName = keyof typeof OPEN

/** What is proven with processes is proven for each of these. */
export const DRIVERS: readonly DriverName[] = ['libsql', 'better-sqlite3']

export function connect(driver: DriverName, file: string): Dialect {
  return OPEN[driver](file)
}
