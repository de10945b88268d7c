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
import { command } from './pragmas'

/** A statement of a library that answers within the call. */
export interface SynchronousStatement {
  /** It has rows, and is asked by `all`. */
  readonly reader: boolean
  all(parameters: readonly unknown[]): Rows
  run(parameters: readonly unknown[]): { readonly changes: number; readonly lastInsertRowid: number | bigint }
}

/** What such a library has of an open database. */
export interface SynchronousDatabase {
  readonly inTransaction: boolean
  /** Nothing may be sent any more: it is to be opened anew. */
  readonly isSpoilt?: boolean
  prepare(sql: string): SynchronousStatement
  close(): void
}

/** Where it comes from. */
export interface SynchronousSource {
  readonly location: string
  /** It is the application's, and cannot be opened anew. */
  readonly isGiven: boolean
  open(durability: Durability | null): SynchronousDatabase
}

/** SQLite in this process: one connection, one synchronous transaction per commit, statements prepared once. */
export function synchronousDialect(source: SynchronousSource): DurablyDialect {
  const connection = new SharedConnection(source)
  return {
    durablyHooks: hooks(connection),
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => new SynchronousDriver(connection),
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

const NOTHING: readonly unknown[] = Object.freeze([])

/** The one connection, for Kysely and for the hooks. */
class SharedConnection implements DatabaseConnection {
  readonly lock = new Semaphore()
  durability: Durability | null = null
  readonly #source: SynchronousSource
  readonly #statements = new Map<string, SynchronousStatement>()
  #database: SynchronousDatabase | undefined
  #isClosed = false

  constructor(source: SynchronousSource) {
    this.#source = source
  }

  get location(): string {
    return this.#source.location
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
    this.#prepare('begin immediate').run(NOTHING)
    try {
      const rows = this.#rowsOfEach(queries)
      this.#prepare('commit').run(NOTHING)
      return rows
    } catch (error) {
      // SQLite has rolled back by itself for many a reason.
      if (this.#open().inTransaction) this.#prepare('rollback').run(NOTHING)
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
    if (this.#isClosed || this.#source.isGiven) return
    this.#statements.clear()
    this.#database?.close()
    this.#database = undefined
  }

  close(): void {
    this.#isClosed = true
    this.#statements.clear()
    this.#database?.close()
  }

  #execute({ sql, parameters }: CompiledQuery): QueryResult<Rows[number]> {
    const statement = this.#prepare(sql)
    if (statement.reader) return { rows: [...statement.all(parameters)] }
    const { changes, lastInsertRowid } = statement.run(parameters)
    return { rows: [], numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid) }
  }

  #prepare(sql: string): SynchronousStatement {
    const database = this.#open()
    const known = this.#statements.get(sql)
    if (known !== undefined) return known
    const prepared = database.prepare(sql)
    if (this.#statements.size >= MAX_STATEMENTS) this.#statements.clear()
    this.#statements.set(sql, prepared)
    return prepared
  }

  #open(): SynchronousDatabase {
    if (this.#isClosed) throw new Error('The database connection is not open')
    if (this.#database?.isSpoilt === true) this.forget()
    this.#database ??= this.#source.open(this.durability)
    return this.#database
  }
}

class SynchronousDriver implements Driver {
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
