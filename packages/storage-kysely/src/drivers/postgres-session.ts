import type { PoolClient } from 'pg'

/** What a session of durably's own is told; one that others use as well hears it in each transaction anew. */
const SETTINGS: readonly (readonly [name: string, value: string])[] = [
  ['statement_timeout', '30s'],
  ['lock_timeout', '5s'],
  ['idle_in_transaction_session_timeout', '10s'],
]

const READ_COMMITTED = ['default_transaction_isolation', 'read committed'] as const

const BEGIN = 'begin isolation level read committed'
/** In one message with it; they end with the transaction. */
const SET_LOCAL = SETTINGS.map(([name, value]) => `; set local ${name} = '${value}'`).join('')

/** Sessions that a pooler lends to others as well: nothing may be left on them. */
const shared = new WeakSet<PoolClient>()

/**
 * Sets up a new connection. A pooler gives its clients process ids of its own making: the settings are made for the
 * session only where the server itself is at the other end.
 */
export async function setUpSession(client: PoolClient): Promise<void> {
  const { processID } = client as unknown as { readonly processID: number | null }
  const settings = [...SETTINGS, READ_COMMITTED].map(([name, value]) => `set_config('${name}', '${value}', false)`)
  const { rowCount } = await client.query(`select ${settings} where pg_backend_pid() = ${Number(processID)}`)
  if (rowCount === 0) shared.add(client)
}

export function isShared(client: PoolClient): boolean {
  return shared.has(client)
}

/** What begins a transaction of durably's that waits for locks for so long. */
export function beginOf(client: PoolClient, lockMs: number): string {
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
