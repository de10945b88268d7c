import type { CompiledQuery, Dialect } from 'kysely'
import type { ClientConfig, DatabasePath } from 'sqlocal'
import { SQLocalKysely } from 'sqlocal/kysely'
import { ConnectionLock } from '../connection-lock'
import type { DurablyDialect, Rows } from './hooks'

/** A file of the browser, or an open client. */
export type SqlocalConfig =
  /** The name of the database in the origin private file system. */
  | DatabasePath
  | ClientConfig
  /** A client of the application's. It is closed with durably. */
  | { readonly client: SQLocalKysely }

/** SQLite in the browser through SQLocal: each commit is one message to the worker that owns the file. */
export function sqlocal(config: SqlocalConfig): DurablyDialect & { readonly client: SQLocalKysely } {
  const client = clientOf(config)
  const { dialect } = client
  const lock = new ConnectionLock()
  let closing: Promise<void> | undefined
  const close = () => {
    closing ??= client.destroy()
    return closing
  }
  return {
    client,
    durablyHooks: {
      location: locationOf(config),
      async batch(queries, waitMs) {
        if (!lock.tryLock()) await lock.lock(waitMs)
        try {
          return await send(client, queries)
        } finally {
          lock.unlock()
        }
      },
      close,
    },
    createAdapter: () => dialect.createAdapter(),
    createDriver: () => Object.assign(withLock(dialect, lock), { destroy: close }),
    createIntrospector: (db) => dialect.createIntrospector(db),
    createQueryCompiler: () => dialect.createQueryCompiler(),
  }
}

async function send(client: SQLocalKysely, queries: readonly CompiledQuery[]): Promise<readonly Rows[]> {
  const [first] = queries
  if (queries.length === 1 && first !== undefined) return [await client.sql(first.sql, ...first.parameters)]
  return client.batch(() => queries.map(({ sql, parameters }) => ({ sql, params: [...parameters] })))
}

/** Kysely's transactions hold the worker; what the hooks send meanwhile would wait there, past any time limit. */
function withLock(dialect: Dialect, lock: ConnectionLock) {
  const driver = dialect.createDriver()
  const acquire = driver.acquireConnection.bind(driver)
  const release = driver.releaseConnection.bind(driver)
  driver.acquireConnection = async () => {
    await lock.lock()
    return acquire()
  }
  driver.releaseConnection = async (connection) => {
    await release(connection)
    lock.unlock()
  }
  return driver
}

function clientOf(config: SqlocalConfig): SQLocalKysely {
  if (typeof config === 'string') return new SQLocalKysely(config)
  return 'client' in config ? config.client : new SQLocalKysely(config)
}

function locationOf(config: SqlocalConfig): string | null {
  if (typeof config === 'string') return config
  return 'databasePath' in config ? config.databasePath : null
}
