import { betterSqlite3 } from '../../src/better-sqlite3'
import type { DatabaseOptions, SqlDurably } from '../../src/index'
import { openMigrated } from '../instances'

/**
 * How a test looks at a file that its programs work on, whatever they use themselves. Two SQLite libraries in one process
 * would drop each other's locks and destroy the file, so a test has this one only.
 */
export function observe(
  file: string,
  options: Partial<Omit<DatabaseOptions, 'dialect' | 'db'>> = {},
): Promise<SqlDurably> {
  return openMigrated(betterSqlite3(file), options)
}
