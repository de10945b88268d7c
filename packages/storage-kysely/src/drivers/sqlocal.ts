import {
  type CompiledQuery,
  type DatabaseConnection,
  type Driver,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'
import type { ClientConfig, DatabasePath } from 'sqlocal'
import type { SQLocalKysely } from 'sqlocal/kysely'
import { ConnectionLock } from '../connection-lock'
import type { DurablyDialect, Rows } from './hooks'
import { explainTrouble, isLostConnection } from './opfs-trouble'
import { SqlocalConnection } from './sqlocal-client'
import { assertKept, isFile, NO_BUSY_TIMEOUT } from './sqlocal-kept'
import { TabTurns } from './tab-turns'

/** A file of the browser, or an open client. */
export type SqlocalConfig =
  /** The name of the database in the origin private file system. */
  | DatabasePath
  | (ClientConfig & {
      /** Work in memory where the file cannot be kept, and lose everything with the tab. Default: an error. */
      readonly allowMemory?: boolean | undefined
    })
  /** A client of the application's. It is closed with durably. */
  | { readonly client: SQLocalKysely }

/**
 * SQLite in the browser through SQLocal: each commit is one message to the worker that owns the file. Nothing is opened
 * before the first use, and a file that cannot be kept is an error, not a database in memory.
 */
export function sqlocal(config: SqlocalConfig): DurablyDialect & { readonly client: SQLocalKysely } {
  const connection = connectionOf(config)
  const location = locationOf(config)
  const turns = new TabTurns(isFile(location) ? location : null)
  const lock = new ConnectionLock()
  return {
    get client() {
      return connection.client
    },
    durablyHooks: {
      location,
      async batch(queries, waitMs) {
        if (!lock.tryLock()) await lock.lock(waitMs)
        const endTurn = await turns.take()
        try {
          return await connection.answered(send(await connection.open(), queries))
        } catch (error) {
          if (isLostConnection(error)) connection.drop()
          throw await explainTrouble(error, location)
        } finally {
          endTurn()
          lock.unlock()
        }
      },
      classifyError: (error) => (/SQLITE_BUSY/.test(String(error)) ? 'STORAGE_HELD' : null),
      close: () => connection.close(),
    },
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => createDriver({ connection, lock, turns }),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  }
}

async function send(client: SQLocalKysely, queries: readonly CompiledQuery[]): Promise<readonly Rows[]> {
  const [first] = queries
  if (queries.length === 1 && first !== undefined) return [await client.sql(first.sql, ...first.parameters)]
  return client.batch(() => queries.map(({ sql, parameters }) => ({ sql, params: [...parameters] })))
}

interface Connection {
  readonly client: SQLocalKysely
  open(): Promise<SQLocalKysely>
  answered<T>(answer: Promise<T>): Promise<T>
  drop(): void
  close(): Promise<void>
}

interface DriverParts {
  readonly connection: Connection
  readonly lock: ConnectionLock
  readonly turns: TabTurns
}

/** Kysely's transactions hold the worker; what the hooks send meanwhile would wait there, past any time limit. */
function createDriver({ connection, lock, turns }: DriverParts): Driver {
  const drivers = new WeakMap<DatabaseConnection, { readonly driver: Driver; readonly endTurn: () => void }>()
  const driverOf = (open: DatabaseConnection) => {
    const known = drivers.get(open)
    if (known === undefined) throw new Error('This connection was released.')
    return known
  }
  return {
    init: async () => {},
    async acquireConnection() {
      await lock.lock()
      const endTurn = await turns.take()
      try {
        const { dialect } = await connection.open()
        const driver = dialect.createDriver()
        const open = await driver.acquireConnection()
        drivers.set(open, { driver, endTurn })
        return open
      } catch (error) {
        endTurn()
        lock.unlock()
        throw error
      }
    },
    beginTransaction: (open, settings) => driverOf(open).driver.beginTransaction(open, settings),
    commitTransaction: (open) => driverOf(open).driver.commitTransaction(open),
    rollbackTransaction: (open) => driverOf(open).driver.rollbackTransaction(open),
    async releaseConnection(open) {
      driverOf(open).endTurn()
      drivers.delete(open)
      lock.unlock()
    },
    destroy: () => connection.close(),
  }
}

function connectionOf(config: SqlocalConfig): Connection {
  if (typeof config === 'string') return new SqlocalConnection({ config: { databasePath: config }, allowMemory: false })
  if ('client' in config) return givenConnection(config.client)
  const { allowMemory = false, ...own } = config
  return new SqlocalConnection({ config: own, allowMemory })
}

function givenConnection(client: SQLocalKysely): Connection {
  let checked: Promise<void> | null = null
  let closing: Promise<void> | null = null
  return {
    client,
    async open() {
      checked ??= assertKept(client).then(async () => void (await client.sql(NO_BUSY_TIMEOUT)))
      await checked
      return client
    },
    answered: (answer) => answer,
    drop: () => {
      checked = null
    },
    close() {
      closing ??= client.destroy()
      return closing
    },
  }
}

function locationOf(config: SqlocalConfig): string {
  if (typeof config === 'string') return config
  return 'client' in config ? config.client['config'].databasePath : config.databasePath
}
