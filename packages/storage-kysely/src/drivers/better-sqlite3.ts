import Database from 'better-sqlite3'
import { InvalidOptionError } from '@coji/durably-core'
import { type OptionNames, refuseUnknownOptions } from '@coji/durably-core/extend'
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Driver,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'
import { Semaphore } from '../connection'
import type { DialectHooks, Durability, DurablyDialect, Rows } from '../dialect'
import { assertSynchronous, assertWal, command, connectionPragmas } from './pragmas'

/** A file, or an open database. */
export type BetterSqlite3Config =
  /** A path, or `:memory:`. */
  | string
  | {
      /** A path, or `:memory:`. */
      readonly filename: string
      /** What better-sqlite3 takes. `timeout` is 20 ms unless given: durably waits for a busy file itself. */
      readonly options?: Database.Options
    }
  /** An open database. It is closed with durably. */
  | { readonly database: Database.Database }

/** SQLite through better-sqlite3: WAL, one synchronous transaction per commit, statements prepared once. */
export function betterSqlite3(config: BetterSqlite3Config): DurablyDialect {
  const connection = new SharedConnection(config)
  return {
    durablyHooks: hooks(connection),
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => new BetterSqlite3Driver(connection),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  }
}

function hooks(connection: SharedConnection): DialectHooks {
  return {
    location: connection.location,
    configure: ({ durability }) => {
      connection.durability = durability
    },
    async batch(queries, waitMs) {
      const { lock } = connection
      if (!lock.tryTake()) await lock.take(waitMs)
      try {
        connection.refuseForeignTransaction()
        return connection.executeList(queries)
      } finally {
        lock.giveBack()
      }
    },
    batchNow(queries) {
      const { lock } = connection
      if (!lock.tryTake()) return null
      try {
        connection.refuseForeignTransaction()
        return connection.executeList(queries)
      } finally {
        lock.giveBack()
      }
    },
    async reopen(waitMs) {
      const { lock } = connection
      if (!lock.tryTake()) await lock.take(waitMs)
      try {
        connection.forget()
      } finally {
        lock.giveBack()
      }
    },
    close: async () => connection.close(),
  }
}

/** Enough for the statements of durably and a good deal of the application's. */
const MAX_STATEMENTS = 500

const NO_ROWS: Rows = Object.freeze([])

/** The one connection, for Kysely and for the hooks. */
class SharedConnection implements DatabaseConnection {
  readonly lock = new Semaphore()
  readonly location: string | null
  durability: Durability | null = null
  readonly #config: BetterSqlite3Config
  readonly #statements = new Map<string, Database.Statement<unknown[], Readonly<Record<string, unknown>>>>()
  #database: Database.Database | undefined
  #isClosed = false

  constructor(config: BetterSqlite3Config) {
    refuseBadConfig(config)
    this.#config = config
    if (typeof config === 'string') this.location = config
    else this.location = 'filename' in config ? config.filename : config.database.name
  }

  /** What is acknowledged inside a raw transaction of the application would be gone with its rollback. */
  refuseForeignTransaction(): void {
    if (!this.#open().inTransaction) return
    throw Object.assign(new Error('database is locked by an open transaction of the application'), {
      code: 'SQLITE_BUSY',
    })
  }

  executeList(queries: readonly CompiledQuery[]): readonly Rows[] {
    if (queries.length === 1) return this.#rowsOfEach(queries)
    this.#prepare('begin immediate').run()
    try {
      const rows = this.#rowsOfEach(queries)
      this.#prepare('commit').run()
      return rows
    } catch (error) {
      // SQLite has rolled back by itself for many a reason.
      if (this.#open().inTransaction) this.#prepare('rollback').run()
      throw error
    }
  }

  #rowsOfEach(queries: readonly CompiledQuery[]): readonly Rows[] {
    return queries.map(({ sql, parameters }) => {
      const statement = this.#prepare(sql)
      if (statement.reader) return statement.all(parameters)
      statement.run(parameters)
      return NO_ROWS
    })
  }

  executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    return new Promise((resolve) => resolve(this.#execute(query) as QueryResult<R>))
  }

  // biome-ignore lint/correctness/useYield: the interface asks for a generator
  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error('This driver does not stream. Read in pages instead.')
  }

  /** The next statement opens the file anew; a database that was given stays. */
  forget(): void {
    if (this.#isClosed || (typeof this.#config !== 'string' && 'database' in this.#config)) return
    this.#statements.clear()
    this.#database?.close()
    this.#database = undefined
  }

  close(): void {
    this.#isClosed = true
    this.#statements.clear()
    this.#database?.close()
  }

  #execute({ sql, parameters }: CompiledQuery): QueryResult<Readonly<Record<string, unknown>>> {
    const statement = this.#prepare(sql)
    if (statement.reader) return { rows: statement.all(parameters) }
    const { changes, lastInsertRowid } = statement.run(parameters)
    return { rows: [], numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid) }
  }

  #prepare(sql: string): Database.Statement<unknown[], Readonly<Record<string, unknown>>> {
    const known = this.#statements.get(sql)
    if (known !== undefined) return known
    const prepared = this.#open().prepare<unknown[], Readonly<Record<string, unknown>>>(sql)
    if (this.#statements.size >= MAX_STATEMENTS) this.#statements.clear()
    this.#statements.set(sql, prepared)
    return prepared
  }

  #open(): Database.Database {
    if (this.#isClosed) throw new Error('The database connection is not open')
    this.#database ??= this.#connect(this.#config)
    return this.#database
  }

  #connect(config: BetterSqlite3Config): Database.Database {
    if (typeof config === 'object' && 'database' in config) return this.#prepareDatabase(config.database)
    const { filename, options = {} } = typeof config === 'string' ? { filename: config } : config
    const database = new Database(filename, { timeout: 20, ...options })
    try {
      return this.#prepareDatabase(database)
    } catch (error) {
      database.close()
      throw error
    }
  }

  #prepareDatabase(database: Database.Database): Database.Database {
    const { durability } = this
    if (durability === null || database.readonly) return database
    const mode: unknown = database.pragma('journal_mode = WAL', { simple: true })
    if (!database.memory) assertWal(mode, this.location)
    for (const pragma of connectionPragmas(durability)) database.pragma(pragma)
    assertSynchronous(database.pragma('synchronous', { simple: true }), durability, this.location)
    return database
  }
}

const CONFIG: OptionNames<Exclude<BetterSqlite3Config, string>> = { filename: true, options: true, database: true }

function refuseBadConfig(config: BetterSqlite3Config): void {
  if (typeof Object(config).prepare === 'function') {
    throw new InvalidOptionError('betterSqlite3() takes an open database as { database }.')
  }
  if (typeof config === 'object' && config !== null) refuseUnknownOptions('betterSqlite3()', config, CONFIG)
  const path: unknown = typeof config === 'object' && config !== null && 'filename' in config ? config.filename : config
  if (typeof Object(config).database === 'object') return
  if (typeof path !== 'string' || path === '') throw new InvalidOptionError('betterSqlite3() needs the path of a file.')
  if (path.startsWith('file:'))
    throw new InvalidOptionError(`betterSqlite3() takes a path, not a URL: ${path.slice(5)}`)
}

class BetterSqlite3Driver implements Driver {
  readonly #connection: SharedConnection

  constructor(connection: SharedConnection) {
    this.#connection = connection
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<DatabaseConnection> {
    await this.#connection.lock.take()
    return this.#connection
  }

  async releaseConnection(): Promise<void> {
    this.#connection.lock.giveBack()
  }

  async beginTransaction(): Promise<void> {
    this.#connection.executeList([command('begin immediate')])
  }

  async commitTransaction(): Promise<void> {
    this.#connection.executeList([command('commit')])
  }

  async rollbackTransaction(): Promise<void> {
    this.#connection.executeList([command('rollback')])
  }

  async destroy(): Promise<void> {
    this.#connection.close()
  }
}
