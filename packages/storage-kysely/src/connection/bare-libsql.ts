import type { Kysely } from 'kysely'
import { innerOf } from './gated-driver'

/** What is used of the client inside a connection of `LibsqlDialect`. */
interface BareClient {
  readonly protocol: string
  /** Since @libsql/client 0.15. */
  reconnect?(): Promise<void>
  transaction(mode: 'deferred'): Promise<{ close(): void }>
}

/**
 * After SQLITE_BUSY a libSQL client on a local file fails at its next COMMIT, until it has a fresh connection. A bare
 * dialect hides its client, but its connections show it. Does nothing for other dialects.
 */
export async function resetBareLibsql(db: Kysely<unknown>): Promise<void> {
  await db.getExecutor().provideConnection(async (given) => {
    const connection = innerOf(given)
    const client = 'client' in connection ? connection.client : null
    if (!isClient(client) || client.protocol !== 'file') return
    if (client.reconnect !== undefined) return client.reconnect()
    // An older client leaves its connection to a transaction and opens another one for what comes next.
    const transaction = await client.transaction('deferred')
    transaction.close()
  })
}

function isClient(value: unknown): value is BareClient {
  return typeof value === 'object' && value !== null && 'protocol' in value && 'transaction' in value
}
