/** A statement was prepared on another session than the one that was to execute it. */
const MIXED_UP: readonly unknown[] = ['42P05', '26000', '08P01']

const NOT_PREPARED =
  'The connection seems to go through a pooler that lends sessions by transaction, as PgBouncer does: give ' +
  'postgres({ …, prepare: false }). Until then this process prepares nothing any more.'

const NO_STARTUP_PARAMETERS =
  'A pooler takes no such parameter: name the schema by postgres({ …, schema }) instead of the search_path in the URL, and ' +
  'give other settings to the role.'

export function isMixedUp(error: unknown): boolean {
  return error instanceof Error && MIXED_UP.includes((error as { code?: unknown }).code)
}

/** The error of a prepared statement, saying what to do where a pooler is the reason. */
export function explainedPooler(error: unknown): Error {
  return withAdvice(error, NOT_PREPARED)
}

/** The error of a connection, likewise. */
export function explainedStart(error: unknown): unknown {
  const isRefused = error instanceof Error && /startup parameter/.test(error.message)
  return isRefused ? withAdvice(error, NO_STARTUP_PARAMETERS) : error
}

function withAdvice(error: unknown, advice: string): Error {
  const { message, code } = error as { message?: string; code?: unknown }
  return Object.assign(new Error(`${message}. ${advice}`, { cause: error }), { code })
}
