import Database from 'better-sqlite3'
import { type Dialect, SqliteDialect } from 'kysely'
import { betterSqlite3 } from '../../src/drivers/better-sqlite3'
import { libsql } from '../../src/drivers/libsql'
import { postgres } from '../../src/drivers/postgres'

export function connect(driver: string, file: string): Dialect {
  if (driver === 'postgres') return postgres({ connectionString: file })
  if (driver === 'libsql') return libsql(`file:${file}`)
  if (driver === 'bare') return new SqliteDialect({ database: new Database(file) })
  return betterSqlite3(file)
}
