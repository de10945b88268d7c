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
import { InvalidOptionError } from '@coji/durably-core'
import { type OptionNames, refuseMisspelledOptions } from '@coji/durably-core/extend'
import { StorageError } from '@coji/durably-core/storage'
import { Semaphore } from '../connection'
import type { DurablyDialect, Rows } from '../dialect'
import { opfsPath } from './opfs-path'
import { Reserve } from './opfs-reserve'
import { explainTrouble, isLostConnection, isOfGoneFile, noRoomToDelete } from './opfs-trouble'
import { PageSleep } from './page-sleep'
import { CutOffBySleep, GivenConnection, OwnConnection, type SqlocalConnection } from './sqlocal-client'
import { databaseAt, isFile } from './sqlocal-kept'
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
  const database = databaseAt(location)
  const turns = new TabTurns(isFile(location) ? opfsPath(location) : null)
  const lock = new Semaphore()
  const reserve = new Reserve(isFile(location))
  const sent = async (queries: readonly CompiledQuery[]) => {
    try {
      const rows = await connection.answered(send(await connection.open(), queries))
      reserve.fill()
      return rows
    } catch (error) {
      if (isLostConnection(error)) connection.drop()
      const trouble = await explainTrouble(error, location)
      if (isOfGoneFile(trouble)) connection.drop()
      throw trouble
    }
  }
  const page = new PageSleep({
    onSleep() {
      connection.sleep()
      turns.letGo()
    },
    // Not before: a page that never wakes would tell of trouble in its last moment.
    onAwake: () => connection.awake(),
  })
  const takeTurn = async () => {
    for (;;) {
      if (page.over !== null) await page.over
      const endTurn = await turns.take()
      if (endTurn !== null) return endTurn
    }
  }
  const close = () => {
    page.stop()
    return connection.close()
  }
  return {
    get client() {
      return connection.client
    },
    durablyHooks: {
      location,
      database,
      // A client of the application's may be that of the next instance too, and closing would end it.
      hasSoleInstance: isFile(location) && connection instanceof OwnConnection,
      async batch(queries, waitMs, sender) {
        if (!lock.tryTake()) await lock.take(waitMs)
        let endTurn = () => {}
        try {
          endTurn = await takeTurn()
          return await (sender === 'remover' ? removeIn(reserve, location, () => sent(queries)) : sent(queries))
        } finally {
          endTurn()
          lock.giveBack()
        }
      },
      classifyError: (error) => (/SQLITE_BUSY/.test(String(error)) ? 'STORAGE_HELD' : null),
      isOver: (error) => error instanceof CutOffBySleep,
      whyHeld: () => connection.whyHeld(),
      close,
    },
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => createDriver({ connection, lock, takeTurn, close }),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  }
}

/** Deletes, with the room that is kept for it when there is no other. */
async function removeIn<T>(reserve: Reserve, location: string, remove: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      const removed = await remove()
      reserve.refill()
      return removed
    } catch (error) {
      if (!(error instanceof StorageError) || error.code !== 'STORAGE_FULL') throw error
      if (!(await reserve.give())) throw noRoomToDelete(location, error.cause)
    }
  }
}

async function send(client: SQLocalKysely, queries: readonly CompiledQuery[]): Promise<readonly Rows[]> {
  const [first] = queries
  if (queries.length === 1 && first !== undefined) return [await client.sql(first.sql, ...first.parameters)]
  return client.batch(() => queries.map(({ sql, parameters }) => ({ sql, params: [...parameters] })))
}

interface DriverParts {
  readonly connection: SqlocalConnection
  readonly lock: Semaphore
  readonly takeTurn: () => Promise<() => void>
  readonly close: () => Promise<void>
}

/** Kysely's transactions hold the worker; what the hooks send meanwhile would wait there, past any time limit. */
function createDriver({ connection, lock, takeTurn, close }: DriverParts): Driver {
  const taken = new WeakMap<DatabaseConnection, Taken>()
  const find = (open: DatabaseConnection) => {
    const found = taken.get(open)
    if (found === undefined) throw new Error('This connection was released.')
    return found
  }
  const asked = (open: DatabaseConnection, call: (taken: Taken) => Promise<void>) =>
    connection.answered(call(find(open)))
  return {
    init: async () => {},
    async acquireConnection() {
      await lock.take()
      let endTurn = () => {}
      try {
        endTurn = await takeTurn()
        const driver = (await connection.open()).dialect.createDriver()
        const inner = await driver.acquireConnection()
        const open = answering(inner, connection)
        taken.set(open, { driver, inner, endTurn })
        return open
      } catch (error) {
        endTurn()
        lock.giveBack()
        throw error
      }
    },
    beginTransaction: (open, settings) => asked(open, ({ driver, inner }) => driver.beginTransaction(inner, settings)),
    commitTransaction: (open) => asked(open, ({ driver, inner }) => driver.commitTransaction(inner)),
    async rollbackTransaction(open) {
      try {
        await asked(open, ({ driver, inner }) => driver.rollbackTransaction(inner))
      } catch (error) {
        // The worker would wait for the end of this transaction for ever.
        connection.drop()
        throw error
      }
    },
    async releaseConnection(open) {
      find(open).endTurn()
      taken.delete(open)
      lock.giveBack()
    },
    destroy: close,
  }
}

interface Taken {
  readonly driver: Driver
  /** SQLocal's own. */
  readonly inner: DatabaseConnection
  readonly endTurn: () => void
}

/** A worker that dies answers nothing any more; who waits for it must hear of that. */
function answering(inner: DatabaseConnection, connection: SqlocalConnection): DatabaseConnection {
  return {
    executeQuery: <R>(query: CompiledQuery) => connection.answered(inner.executeQuery<R>(query)),
    streamQuery: <R>(query: CompiledQuery) => inner.streamQuery<R>(query),
  }
}

const CONFIG: OptionNames<Exclude<SqlocalConfig, string>> = {
  client: true,
  allowMemory: true,
  databasePath: true,
  reactive: true,
  readOnly: true,
  verbose: true,
  onInit: true,
  onConnect: true,
  processor: true,
}

function refuseBadConfig(config: SqlocalConfig): void {
  if (typeof config === 'string' && config !== '') return
  const { databasePath, client, dialect } = Object(config) as Readonly<Record<string, unknown>>
  if (dialect !== undefined) throw new InvalidOptionError('sqlocal() takes an open client as { client }.')
  if (typeof config === 'object' && config !== null) refuseMisspelledOptions('sqlocal()', config, CONFIG)
  if ((typeof databasePath === 'string' && databasePath !== '') || Object(client).dialect !== undefined) return
  throw new InvalidOptionError("sqlocal() needs the name of a file, such as sqlocal('app.db'), or { client }.")
}

function connectionOf(config: SqlocalConfig): SqlocalConnection {
  refuseBadConfig(config)
  if (typeof config === 'string') return new OwnConnection({ databasePath: config })
  if ('client' in config) return new GivenConnection(config.client)
  const { allowMemory, ...own } = config
  return new OwnConnection(own, { allowMemory })
}

function locationOf(config: SqlocalConfig): string {
  if (typeof config === 'string') return config
  return 'client' in config ? config.client['config'].databasePath : config.databasePath
}
