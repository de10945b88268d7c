import type { PGlite } from '@electric-sql/pglite'
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type QueryResult,
} from 'kysely'

/** A bare dialect as an application could have it: one connection, lent to one after another. */
export function pgliteDialect(pglite: PGlite, schema: string): Dialect {
  return {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new PgliteDriver(pglite, schema),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  }
}

/** All dialects on one database take turns. */
const lines = new WeakMap<PGlite, Promise<void>>()

class PgliteDriver implements Driver {
  readonly #pglite: PGlite
  readonly #releases = new WeakMap<DatabaseConnection, () => void>()

  readonly #schema: string

  constructor(pglite: PGlite, schema: string) {
    this.#pglite = pglite
    this.#schema = schema
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<DatabaseConnection> {
    const before = lines.get(this.#pglite) ?? Promise.resolve()
    const connection = new PgliteConnection(this.#pglite)
    const turn = new Promise<void>((resolve) => this.#releases.set(connection, resolve))
    lines.set(this.#pglite, turn)
    await before
    await this.#send(`set search_path to ${this.#schema}`)
    return connection
  }

  async releaseConnection(connection: DatabaseConnection): Promise<void> {
    this.#releases.get(connection)?.()
  }

  beginTransaction(): Promise<void> {
    return this.#send('begin')
  }

  commitTransaction(): Promise<void> {
    return this.#send('commit')
  }

  rollbackTransaction(): Promise<void> {
    return this.#send('rollback')
  }

  async destroy(): Promise<void> {}

  async #send(text: string): Promise<void> {
    await this.#pglite.query(text)
  }
}

class PgliteConnection implements DatabaseConnection {
  readonly #pglite: PGlite

  constructor(pglite: PGlite) {
    this.#pglite = pglite
  }

  async executeQuery<R>({ sql, parameters }: CompiledQuery): Promise<QueryResult<R>> {
    const { rows } = await this.#pglite.query<R>(sql, [...parameters])
    return { rows }
  }

  // biome-ignore lint/correctness/useYield: the interface asks for a generator
  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error('This driver does not stream.')
  }
}
