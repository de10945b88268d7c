import type { PoolClient } from 'pg'

/** What a session of durably's own is told at most; one that others use as well hears it in each transaction anew. */
const LIMITS_MS = {
  statement_timeout: 30_000,
  lock_timeout: 5000,
  idle_in_transaction_session_timeout: 10_000,
} as const

const BEGIN = 'begin isolation level read committed'
/** In one message with it; they end with the transaction. */
const SET_LOCAL = Object.entries(LIMITS_MS)
  .map(([name, ms]) => `; set local ${name} = ${ms}`)
  .join('')

/** What is known of the session of a connection. */
interface Session {
  /** A pooler lends it to others as well: nothing may be left on it. */
  readonly isShared: boolean
  /** How long it waits for a lock without being told otherwise; `null` for as long as it takes. */
  readonly lockMs: number | null
}

const sessions = new WeakMap<PoolClient, Session>()

const LIMIT_VALUES = Object.entries(LIMITS_MS).map(([name, ms]) => `('${name}', ${ms})`)

/** Whoever runs the database may have set shorter ones for the role: those stay. */
const SET_UP = `select name, ms, is_own, case when is_own then set_config(name, cast(ms as text), false) end as told,
    case when is_own then set_config('default_transaction_isolation', 'read committed', false) end as isolation
  from (select name, most, pg_backend_pid() = $1 as is_own,
      case when cast(setting as integer) between 1 and most then cast(setting as integer) else most end as ms
    from pg_settings join (values ${LIMIT_VALUES.join(', ')}) as ours (name, most) using (name)) as limits`

/**
 * Sets up a new connection. A pooler gives its clients process ids of its own making: the settings are made for the
 * session only where the server itself is at the other end.
 */
export async function setUpSession(client: PoolClient): Promise<void> {
  const { processID } = client as unknown as { readonly processID: number | null }
  const { rows } = await client.query<{ name: string; ms: number; is_own: boolean }>(SET_UP, [processID])
  const lock = rows.find(({ name }) => name === 'lock_timeout')
  sessions.set(client, { isShared: lock?.is_own !== true, lockMs: lock?.ms ?? null })
}

/** A connection of the application is left as it is. */
export async function learnSession(client: PoolClient): Promise<void> {
  if (sessions.has(client)) return
  const limit = `select cast(setting as integer) as ms from pg_settings where name = 'lock_timeout'`
  const { rows } = await client.query<{ ms: number }>(limit)
  sessions.set(client, { isShared: false, lockMs: rows[0]?.ms || null })
}

function isShared(client: PoolClient): boolean {
  return sessions.get(client)?.isShared === true
}

/** What begins a transaction of durably's that waits for locks for so long, or for as long as the session would. */
export function beginOf(client: PoolClient, patienceMs: number): string {
  const lockMs = Math.min(patienceMs, sessions.get(client)?.lockMs ?? patienceMs)
  return `${BEGIN}${isShared(client) ? SET_LOCAL : ''}; set local lock_timeout = ${lockMs}`
}

/** What Kysely sends, and on a shared session what the transactions of others must not have. */
export function asSent(client: PoolClient, text: string): string {
  if (!isShared(client) || !/^(begin|start transaction)\b/i.test(text)) return text
  return (text === 'begin' ? BEGIN : text) + SET_LOCAL
}

/** A read waits for nobody. Anything else needs the limits of a transaction where the session has none. */
export function needsTransaction(client: PoolClient, text: string): boolean {
  return isShared(client) && !/^\s*select\b/i.test(text)
}
