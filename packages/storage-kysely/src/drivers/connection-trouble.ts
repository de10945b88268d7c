/** A statement was prepared on another session than the one that was to execute it. */
const MIXED_UP: readonly unknown[] = ['42P05', '26000']

/** With this code PgBouncer says everything that it says itself, such as that no session became free in time. */
const PROTOCOL_VIOLATION = '08P01'
/** What Postgres says of it, in English, and PgBouncer where it keeps prepared statements apart. */
const OF_PREPARED = /bind message|prepared statement/

const NOT_PREPARED =
  'The connection seems to go through a pooler that lends sessions by transaction, as PgBouncer does: give ' +
  'postgres({ …, prepare: false }). Until then this process prepares nothing any more.'

const IDLE_FOR_TOO_LONG =
  'Nothing was sent in the transaction for so long that the server ended it (idle_in_transaction_session_timeout, 10 s on ' +
  'connections of durably): await nothing else in it.'

/** What Node says of a certificate. */
const DISTRUSTED = /SELF_SIGNED_CERT|UNABLE_TO_(VERIFY|GET_ISSUER)|CERT_(HAS_EXPIRED|NOT_YET_VALID)|ERR_TLS_CERT/

const NOT_TRUSTED =
  'The driver verifies the certificate of the server, whatever sslmode asks for it: name the authority that signed it by ' +
  'sslrootcert=/path/to/ca.pem in the URL, or give up on knowing whose server it is by sslmode=no-verify.'

const NO_STARTUP_PARAMETERS =
  'A pooler takes no such parameter: name the schema by postgres({ …, schema }) instead of the search_path in the URL, and ' +
  'give other settings to the role.'

export function isMixedUp(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { code, routine, message } = error as { code?: unknown; routine?: unknown; message: string }
  if (code === PROTOCOL_VIOLATION) return routine === 'exec_bind_message' || OF_PREPARED.test(message)
  return MIXED_UP.includes(code)
}

/** The error of a prepared statement, saying what to do where a pooler is the reason. */
export function explainedPooler(error: unknown): Error {
  return withAdvice(error, NOT_PREPARED)
}

/** The error of a connection, likewise. */
export function explainedStart(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  if (/startup parameter/.test(error.message)) return withAdvice(error, NO_STARTUP_PARAMETERS)
  return DISTRUSTED.test(String((error as { code?: unknown }).code)) ? withAdvice(error, NOT_TRUSTED) : error
}

/** The error of a statement on a connection that had died before, when the reason says what to do. */
export function explainedEnd(error: unknown, death: Error | undefined): unknown {
  return (death as { code?: unknown } | undefined)?.code === '25P03' ? withAdvice(death, IDLE_FOR_TOO_LONG) : error
}

function withAdvice(error: unknown, advice: string): Error {
  const { message, code } = error as { message?: string; code?: unknown }
  return Object.assign(new Error(`${message}. ${advice}`, { cause: error }), { code })
}
