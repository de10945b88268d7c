import { DurablyError } from '@coji/durably-core'
import { NotMigratedError, StorageError, type StorageErrorCode } from '@coji/durably-core/storage'
import { SCHEMA_VERSION } from '../migrations'

const CODES: Readonly<Record<string, StorageErrorCode>> = {
  SQLITE_BUSY: 'STORAGE_BUSY',
  SQLITE_LOCKED: 'STORAGE_BUSY',
  SQLITE_PROTOCOL: 'STORAGE_BUSY',
  SQLITE_READONLY: 'STORAGE_READONLY',
  SQLITE_PERM: 'STORAGE_READONLY',
  SQLITE_FULL: 'STORAGE_FULL',
  SQLITE_CORRUPT: 'STORAGE_CORRUPT',
  SQLITE_NOTADB: 'STORAGE_CORRUPT',
  SQLITE_IOERR: 'STORAGE_UNAVAILABLE',
  SQLITE_CANTOPEN: 'STORAGE_CANNOT_OPEN',
  SQLITE_NOMEM: 'STORAGE_UNAVAILABLE',
  SQLITE_INTERRUPT: 'STORAGE_UNAVAILABLE',
  SQLITE_CONSTRAINT: 'STORAGE_REJECTED',
  SQLITE_MISMATCH: 'STORAGE_REJECTED',
  SQLITE_TOOBIG: 'STORAGE_REJECTED',
  SQLITE_RANGE: 'STORAGE_REJECTED',
  SQL_INPUT_ERROR: 'STORAGE_UNAVAILABLE',
  SQL_PARSE_ERROR: 'STORAGE_UNAVAILABLE',
  CLIENT_CLOSED: 'STORAGE_CLOSED',
}

/** SQLSTATE of Postgres: whole codes first, then classes. */
const SQLSTATES: Readonly<Record<string, StorageErrorCode>> = {
  '40001': 'STORAGE_BUSY',
  '40P01': 'STORAGE_BUSY',
  '55P03': 'STORAGE_BUSY',
  '25006': 'STORAGE_READONLY',
  // Somebody caught the error of a statement and went on in the transaction that it had spoilt.
  '25P02': 'STORAGE_REJECTED',
  '25P03': 'TRANSACTION_TIMEOUT',
  '42501': 'STORAGE_READONLY',
  '53100': 'STORAGE_FULL',
  '3D000': 'STORAGE_CANNOT_OPEN',
  // The rest of this class is trouble inside the server that passes, as "tuple concurrently updated" does.
  XX001: 'STORAGE_CORRUPT',
  XX002: 'STORAGE_CORRUPT',
  // What the data of a write is to blame for, as opposed to what the schema lacks at the moment (42).
  '22': 'STORAGE_REJECTED',
  '23': 'STORAGE_REJECTED',
  '28': 'STORAGE_CANNOT_OPEN',
  '42': 'STORAGE_UNAVAILABLE',
  '54': 'STORAGE_REJECTED',
}

const MESSAGES: readonly (readonly [RegExp, StorageErrorCode])[] = [
  [/database (table )?is locked/i, 'STORAGE_BUSY'],
  [
    /connection is not open|after calling end on the pool|already been destroyed|client is closed|has been destroyed|closed while/i,
    'STORAGE_CLOSED',
  ],
  [/read-?only database/i, 'STORAGE_READONLY'],
  [/disk is full/i, 'STORAGE_FULL'],
  [/malformed|not a database/i, 'STORAGE_CORRUPT'],
  [/certificate/i, 'STORAGE_CANNOT_OPEN'],
  [/unable to open|directory does not exist|URL_INVALID|URL_SCHEME|not in a valid format/i, 'STORAGE_CANNOT_OPEN'],
  [/fetch failed|network|ECONN|socket/i, 'STORAGE_UNAVAILABLE'],
  [/can only bind|cannot be passed as|constraint failed/i, 'STORAGE_REJECTED'],
]

/** What a driver error means. What nobody knows is taken for trouble that passes. */
function classifyDriverError(error: unknown): StorageErrorCode {
  for (const link of causesOf(error)) {
    const state = isSqlState(link.code) ? (SQLSTATES[link.code] ?? SQLSTATES[link.code.slice(0, 2)]) : undefined
    if (state !== undefined) return state
    for (const text of [link.code, link.message]) {
      // Codes are extended with a suffix (SQLITE_BUSY_SNAPSHOT), and some drivers put them into the message only.
      const [code] = /SQLITE_[A-Z]+|SQL_[A-Z_]+|CLIENT_CLOSED/.exec(text) ?? []
      const known = code === undefined ? undefined : CODES[code]
      if (known !== undefined) return known
    }
    const byMessage = MESSAGES.find(([pattern]) => pattern.test(link.message))
    if (byMessage !== undefined) return byMessage[1]
  }
  return 'STORAGE_UNAVAILABLE'
}

interface DriverErrorContext {
  readonly location: string | null
  readonly classify: ((error: unknown) => StorageErrorCode | null) | undefined
}

/** The error callers see. What is durably's own already stays as it is. */
export function toStorageError(error: unknown, { location, classify }: DriverErrorContext): DurablyError {
  if (error instanceof DurablyError) return error
  if (isMissingTable(error)) return new NotMigratedError(0, SCHEMA_VERSION)
  const code = classify?.(error) ?? classifyDriverError(error)
  const message = causesOf(error).map((link) => link.message)[0] ?? String(error)
  const options = { cause: error, ...(isUndone(error) && { mayHaveArrived: false }) }
  return new StorageError(code, location === null ? message : `${location}: ${message}`, options)
}

/** Errors of connections that were never made. */
const ofConnecting = new WeakSet<object>()

/** Nothing was sent, as a driver knows that says so by no code. */
export function noteOfConnecting(error: unknown): void {
  if (typeof error === 'object' && error !== null) ofConnecting.add(error)
}

/** Nobody was reached, or the statement was looked at and not begun. */
function isUndone(error: unknown): boolean {
  return isOfConnecting(error) || causesOf(error).some(({ code }) => /^42...$|^SQL_(INPUT|PARSE)_ERROR$/.test(code))
}

function isOfConnecting(error: unknown): boolean {
  if (typeof error === 'object' && error !== null && ofConnecting.has(error)) return true
  return causesOf(error).some(({ code }) => /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH)$/.test(code))
}

export function isMissingTable(error: unknown): boolean {
  return causesOf(error).some(({ code, message }) => code === '42P01' || /no such table/i.test(message))
}

/** The role may not do this. */
export function isForbidden(error: unknown): boolean {
  return causesOf(error).some(({ code }) => code === '42501')
}

/** Five letters alone are a name, as EPIPE is. */
function isSqlState(code: string): boolean {
  return /^(?=.*\d)[0-9A-Z]{5}$/.test(code)
}

/**
 * States in which Postgres is in trouble itself, was cut off, or sacrificed the transaction to others; not what a
 * statement asked for.
 */
const STATES_OF_TROUBLE = /^(08...|26000|42P05|40001|40P01|25006|53...|57P0.|58...|XX00[12])$/

const CODES_OF_TROUBLE: ReadonlySet<string> = new Set(
  'BUSY LOCKED PROTOCOL READONLY FULL CORRUPT NOTADB IOERR CANTOPEN NOMEM INTERRUPT'.split(' '),
)

/** What the operating system says of a connection. */
const CONNECTION_CODE = /\b(EPIPE|ECONN[A-Z]+|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOST[A-Z]+|ENET[A-Z]+)\b/

/** What servers and those on the way to them say. */
const CUT_OFF =
  /HRANA_|SERVER_ERROR|TRANSACTION_CLOSED|STREAM_EXPIRED|UND_ERR_|fetch failed|network error|\b(web)?socket\b|connection (terminated|closed)|aborted due to timeout/i

const LOCKED_OR_FULL = /database (table )?is locked|disk is full|disk I\/O error/i

/** The rest of such a message is a piece of the statement, whatever its words. */
const FAULT_OF_STATEMENT = /no such (table|column)|syntax error|constraint failed/i

/**
 * Whether a statement failed because of the database, however right it was. What nobody knows is taken for a fault of
 * the statement: it is somebody else's, and would be sent again and again.
 */
export function isTrouble(error: unknown): boolean {
  if (error instanceof StorageError) return error.code === 'STORAGE_UNAVAILABLE'
  for (const { code, message } of causesOf(error)) {
    if (isSqlState(code)) return STATES_OF_TROUBLE.test(code)
    const text = `${code} ${message}`
    const [, sqlite] = /SQLITE_([A-Z]+)/.exec(text) ?? []
    if (sqlite !== undefined) return CODES_OF_TROUBLE.has(sqlite)
    if (FAULT_OF_STATEMENT.test(message)) return false
    if ([CONNECTION_CODE, CUT_OFF, LOCKED_OR_FULL].some((pattern) => pattern.test(text))) return true
  }
  return false
}

/** Somebody else has what is wanted, and was not waited for any longer. */
export function isBusy(error: unknown): boolean {
  return error instanceof StorageError && error.code === 'STORAGE_BUSY'
}

export function isConstraintError(error: unknown): boolean {
  return causesOf(error).some(
    ({ code, message }) => /CONSTRAINT|^23\d/.test(code) || /constraint failed/i.test(message),
  )
}

interface ErrorLink {
  readonly code: string
  readonly message: string
}

function causesOf(error: unknown): ErrorLink[] {
  const links: ErrorLink[] = []
  let current = error
  while (current instanceof Error && links.length < 5) {
    const { code } = current as { code?: unknown }
    links.push({ code: typeof code === 'string' ? code : '', message: current.message })
    current = current.cause
  }
  return links
}
