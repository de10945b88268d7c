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
  all(parameters: readonly unknown[]): readonly unknown[]
  /** From now on rows are lists of values. */
  raw(): unknown
  columns(): readonly { readonly name: string }[]
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

/**
 * A statement of durably's own. Its rows are asked for without names, which the library would make anew for each of them:
 * of a claim, or of the steps of a run, that is a third of the time. With a star it may have other columns one day.
 */
class OwnStatement {
  readonly #statement: SynchronousStatement
  readonly #names: readonly string[] | null = null

  constructor(statement: SynchronousStatement, sql: string) {
    this.#statement = statement
    if (!statement.reader || sql.includes('*')) return
    this.#names = statement.columns().map(({ name }) => name)
    statement.raw()
  }

  execute(parameters: readonly unknown[]): Rows {
    if (!this.#statement.reader) {
      this.#statement.run(parameters)
      return NO_ROWS
    }
    const names = this.#names
    const rows = this.#statement.all(parameters)
    return names === null ? (rows as Rows) : rows.map((values) => toRow(names, values as readonly unknown[]))
  }
}

function toRow(names: readonly string[], values: readonly unknown[]): Rows[number] {
  const row: Record<string, unknown> = {}
  for (let index = 0; index < names.length; index++) row[names[index] as string] = values[index]
  return row
}

/** Statements by their text, each prepared once. */
class Prepared<T> {
  readonly #prepare: (sql: string) => T
  readonly #statements = new Map<string, T>()

  constructor(prepare: (sql: string) => T) {
    this.#prepare = prepare
  }

  of(sql: string): T {
    const known = this.#statements.get(sql)
    if (known !== undefined) return known
    const prepared = this.#prepare(sql)
    if (this.#statements.size >= MAX_STATEMENTS) this.#statements.clear()
    this.#statements.set(sql, prepared)
    return prepared
  }

  forget(): void {
    this.#statements.clear()
  }
}

/** The one connection, for Kysely and for the hooks. */
class SharedConnection implements DatabaseConnection {
  readonly lock = new Semaphore()
  durability: Durability | null = null
  readonly #source: SynchronousSource
  readonly #ownStatements = new Prepared((sql) => new OwnStatement(this.#open().prepare(sql), sql))
  readonly #givenStatements = new Prepared((sql) => this.#open().prepare(sql))
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
    this.#own('begin immediate').execute(NOTHING)
    try {
      const rows = this.#rowsOfEach(queries)
      this.#own('commit').execute(NOTHING)
      return rows
    } catch (error) {
      // SQLite has rolled back by itself for many a reason.
      if (this.#open().inTransaction) this.#own('rollback').execute(NOTHING)
      throw error
    }
  }

  #rowsOfEach(queries: readonly CompiledQuery[]): readonly Rows[] {
    return queries.map(({ sql, parameters }) => this.#own(sql).execute(parameters))
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
    this.#forgetStatements()
    this.#database?.close()
    this.#database = undefined
  }

  close(): void {
    this.#isClosed = true
    this.#forgetStatements()
    this.#database?.close()
  }

  #forgetStatements(): void {
    this.#ownStatements.forget()
    this.#givenStatements.forget()
  }

  /** For what Kysely sends, the application's too. */
  #execute({ sql, parameters }: CompiledQuery): QueryResult<Rows[number]> {
    // When it is opened anew, the statements of the one before are forgotten.
    this.#open()
    const statement = this.#givenStatements.of(sql)
    if (statement.reader) return { rows: [...statement.all(parameters)] as Rows[number][] }
    const { changes, lastInsertRowid } = statement.run(parameters)
    return { rows: [], numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid) }
  }

  #own(sql: string): OwnStatement {
    this.#open()
    return this.#ownStatements.of(sql)
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
