import type {
  CompiledQuery,
  DatabaseConnection,
  Dialect,
  Driver,
  QueryCompiler,
  QueryResult,
  TransactionSettings,
} from 'kysely'

/**
 * The same dialect, whose transactions end when they end. A body that was given up (a time-out, a lost lease, a
 * cancelled run) may have a statement on its way when its transaction is rolled back, and sends the next one once that
 * is answered: behind the ROLLBACK in the driver's queue, where it would be a transaction of its own, or part of
 * somebody else's. On SQLite a savepoint that comes so late even begins one that nobody ends.
 */
export function gated(dialect: Dialect): Dialect {
  return {
    createAdapter: () => dialect.createAdapter(),
    createDriver: () => new GatedDriver(dialect.createDriver()),
    createIntrospector: (db) => dialect.createIntrospector(db),
    createQueryCompiler: () => dialect.createQueryCompiler(),
  }
}

class GatedConnection implements DatabaseConnection {
  readonly inner: DatabaseConnection
  #isShut = false

  constructor(inner: DatabaseConnection) {
    this.inner = inner
  }

  /** Nothing else passes until the transaction has ended; Kysely itself refuses what comes after that. */
  async shutWhile(ending: () => Promise<void>): Promise<void> {
    this.#isShut = true
    await ending()
    this.#isShut = false
  }

  shut(): void {
    this.#isShut = true
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    this.#refuseIfShut()
    return this.inner.executeQuery<R>(query)
  }

  async *streamQuery<R>(query: CompiledQuery, chunkSize?: number): AsyncIterableIterator<QueryResult<R>> {
    this.#refuseIfShut()
    yield* this.inner.streamQuery<R>(query, chunkSize)
  }

  #refuseIfShut(): void {
    if (this.#isShut) throw new Error('The transaction has ended. This statement came too late and was not sent.')
  }
}

class GatedDriver implements Driver {
  readonly #inner: Driver

  constructor(inner: Driver) {
    this.#inner = inner
  }

  init(): Promise<void> {
    return this.#inner.init()
  }

  async acquireConnection(): Promise<DatabaseConnection> {
    return new GatedConnection(await this.#inner.acquireConnection())
  }

  beginTransaction(connection: DatabaseConnection, settings: TransactionSettings): Promise<void> {
    return this.#inner.beginTransaction(innerOf(connection), settings)
  }

  commitTransaction(connection: DatabaseConnection): Promise<void> {
    return ending(connection, (inner) => this.#inner.commitTransaction(inner))
  }

  rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    return ending(connection, (inner) => this.#inner.rollbackTransaction(inner))
  }

  async savepoint(connection: DatabaseConnection, name: string, compile: QueryCompiler['compileQuery']): Promise<void> {
    await this.#inner.savepoint?.(connection, name, compile)
  }

  async rollbackToSavepoint(
    connection: DatabaseConnection,
    name: string,
    compile: QueryCompiler['compileQuery'],
  ): Promise<void> {
    await this.#inner.rollbackToSavepoint?.(connection, name, compile)
  }

  async releaseSavepoint(
    connection: DatabaseConnection,
    name: string,
    compile: QueryCompiler['compileQuery'],
  ): Promise<void> {
    await this.#inner.releaseSavepoint?.(connection, name, compile)
  }

  async releaseConnection(connection: DatabaseConnection): Promise<void> {
    if (connection instanceof GatedConnection) connection.shut()
    await this.#inner.releaseConnection(innerOf(connection))
  }

  destroy(): Promise<void> {
    return this.#inner.destroy()
  }
}

/** The connection of the dialect itself. */
export function innerOf(connection: DatabaseConnection): DatabaseConnection {
  return connection instanceof GatedConnection ? connection.inner : connection
}

function ending(connection: DatabaseConnection, end: (inner: DatabaseConnection) => Promise<void>): Promise<void> {
  if (!(connection instanceof GatedConnection)) return end(connection)
  return connection.shutWhile(() => end(connection.inner))
}
