import { StorageError } from '@coji/durably-core/storage'
import { describe, expect, it } from 'vitest'
import { isTrouble, toStorageError } from '../src/connection/driver-errors'

const error = (message: string, code?: string, cause?: Error) => Object.assign(new Error(message, { cause }), { code })

const TROUBLE: readonly Error[] = [
  error('write EPIPE', 'EPIPE'),
  error('read ECONNRESET', 'ECONNRESET'),
  error('connect ETIMEDOUT 10.0.0.1:5432', 'ETIMEDOUT'),
  error('getaddrinfo ENOTFOUND db.example', 'ENOTFOUND'),
  error('getaddrinfo EAI_AGAIN db.example', 'EAI_AGAIN'),
  error('connect EHOSTUNREACH 10.0.0.1:5432', 'EHOSTUNREACH'),
  error('connection_exception', '08000'),
  error('server closed the connection unexpectedly', '08006'),
  error('deadlock detected', '40P01'),
  error('terminating connection due to administrator command', '57P01'),
  error('The operation was aborted due to timeout'),
  error('fetch failed', undefined, error('other side closed', 'UND_ERR_SOCKET')),
  error('socket hang up'),
  error('Client network socket disconnected before secure TLS connection was established'),
  error('Connection terminated unexpectedly'),
  error('database is locked'),
  error('SQLITE_BUSY_SNAPSHOT', 'SQLITE_BUSY_SNAPSHOT'),
  error('disk I/O error', 'SQLITE_IOERR_WRITE'),
  new StorageError('STORAGE_UNAVAILABLE', 'The page was put to sleep.'),
]

const FAULT: readonly Error[] = [
  error('no such table: sockets'),
  error('no such table: socket'),
  error('no such column: EPIPE'),
  error('relation "sockets" does not exist', '42P01'),
  error('duplicate key value violates unique constraint "socket"', '23505'),
  error('SQLITE_ERROR: no such table: sockets', 'SQLITE_ERROR'),
  error('UNIQUE constraint failed: users.socket', 'SQLITE_CONSTRAINT_UNIQUE'),
  error('UNIQUE constraint failed: users.timeout'),
  error('near "socket": syntax error'),
  error('feature not supported', '0A000'),
  error('what nobody knows'),
  new StorageError('STORAGE_REJECTED', 'too long'),
]

describe('a statement that failed', () => {
  it.each(TROUBLE)('because of the database: %s', (thrown) => expect(isTrouble(thrown)).toBe(true))
  it.each(FAULT)('by its own fault: %s', (thrown) => expect(isTrouble(thrown)).toBe(false))
})

const OF_DATA: readonly Error[] = [
  error('invalid byte sequence for encoding "UTF8": 0x00', '22021'),
  error('duplicate key value violates unique constraint "one"', '23505'),
  error('row is too big: size 9000, maximum size 8160', '54000'),
  error('CHECK constraint failed: no poison', 'SQLITE_CONSTRAINT_CHECK'),
  error('SQLITE_CONSTRAINT: SQLite error: UNIQUE constraint failed: users.id', 'SQLITE_CONSTRAINT'),
  error('string or blob too big', 'SQLITE_TOOBIG'),
  error('datatype mismatch', 'SQLITE_MISMATCH'),
  error('SQLite3 can only bind numbers, strings, bigints, buffers, and null'),
]

const OF_SCHEMA: readonly Error[] = [
  error('column "output" of relation "durably_steps" does not exist', '42703'),
  error('function now_ms() does not exist', '42883'),
  error('syntax error at or near "on"', '42601'),
  error('SQLITE_ERROR: no such column: output', 'SQLITE_ERROR'),
  error('SQL_INPUT_ERROR: SQLite input error: no such column: output (at offset 7)', 'SQL_INPUT_ERROR'),
  error('SQL_PARSE_ERROR: SQL string could not be parsed', 'SQL_PARSE_ERROR'),
]

describe('a write of durably that failed', () => {
  const codeOf = (thrown: Error) => toStorageError(thrown, { location: null, classify: undefined }).code

  it.each(OF_DATA)('for its data is never taken: %s', (thrown) => expect(codeOf(thrown)).toBe('STORAGE_REJECTED'))
  it.each(OF_SCHEMA)('for the state of the database is sent again: %s', (thrown) =>
    expect(codeOf(thrown)).toBe('STORAGE_UNAVAILABLE'),
  )
})
