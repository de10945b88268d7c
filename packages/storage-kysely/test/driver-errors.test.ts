import { describe, expect, it } from 'vitest'
import { isTrouble } from '../src/driver-errors'

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
]

describe('a statement that failed', () => {
  it.each(TROUBLE)('because of the database: %s', (thrown) => expect(isTrouble(thrown)).toBe(true))
  it.each(FAULT)('by its own fault: %s', (thrown) => expect(isTrouble(thrown)).toBe(false))
})
