export { betterSqlite3, type BetterSqlite3Config } from '@coji/durably-storage-kysely/better-sqlite3'
