import { type Client, type Config, createClient, type InValue, type ResultSet, type Transaction } from '@libsql/client'
import { InvalidOptionError } from '@coji/durably-core'
import { type OptionNames, refuseMisspelledOptions } from '@coji/durably-core/extend'
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
import { nativeLibsql } from './native-libsql'
import { assertSynchronous, assertWal, connectionPragmas } from './pragmas'
import { type SynchronousSource, synchronousDialect } from './synchronous'

/** A local file, a server, or an open client. */
export type LibsqlConfig =
  /** `file:local.db`, `libsql://…`, `https://…` */
  | string
  /** What the client of libSQL takes, with its `url`. */
  | Config
  /**
   * A client of the application's. It is left open. On a local file it is reconnected after SQLITE_BUSY, which ends
   * transactions that are open on it, and its further connections come without durably's settings.
   */
  | { readonly client: Client }

/** SQLite through libSQL: a local file in WAL mode, asked within the call, or a server (Turso), where each commit is one request. */
export function libsql(config: LibsqlConfig): DurablyDialect {
  refuseBadConfig(config)
  const source = isGiven(config) ? null : sourceOf(typeof config === 'string' ? { url: config } : config)
  if (source !== null) return synchronousDialect(source)
  const database = new LibsqlDatabase(config)
  return {
    durablyHooks: hooks(database),
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => new LibsqlDriver(database),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  }
}

/** A file that nobody else has to do with: without a key, without a server behind it. */
function sourceOf(config: Config): SynchronousSource | null {
  const asked = Object.entries(config).flatMap(([option, value]) => (value === undefined ? [] : [option]))
  return asked.every((option) => OF_EVERY_FILE.has(option)) ? nativeLibsql(config.url) : null
}

/** `libsql()` decides these for a file itself. */
const OF_EVERY_FILE: ReadonlySet<string> = new Set(['url', 'concurrency', 'timeout'])

function hooks(database: LibsqlDatabase): DialectHooks {
  return {
    location: database.location,
    configure: ({ durability }) => {
      database.durability = durability
    },
    batch: (queries, waitMs) => database.batch(queries, waitMs),
    reset: (waitMs) => database.reset(waitMs),
    reopen: (waitMs) => database.reopen(waitMs),
    close: async () => database.close(),
  }
}

/** The client, and for a local file the lock that keeps this process from meeting itself there. */
class LibsqlDatabase {
  readonly location: string | null
  durability: Durability | null = null
  readonly #config: LibsqlConfig
  readonly #lock = new Semaphore()
  #client: Client | undefined
  #setUp: Promise<void> | undefined
  #isClosed = false

  constructor(config: LibsqlConfig) {
    this.#config = config
    if (typeof config === 'string') this.location = withoutQuery(config)
    else this.location = 'url' in config ? withoutQuery(config.url) : null
  }

  async batch(queries: readonly CompiledQuery[], waitMs: number): Promise<readonly Rows[]> {
    await this.acquire(waitMs)
    try {
      const client = await this.client()
      const [first] = queries
      if (queries.length === 1 && first !== undefined) return [(await client.execute(toStatement(first))).rows]
      const results = await client.batch(queries.map(toStatement), 'write')
      return results.map((result) => result.rows)
    } finally {
      this.release()
    }
  }

  /** A server has a connection for everybody; a file has one for this process. */
  async acquire(waitMs?: number): Promise<void> {
    if (this.#isLocal()) await this.#lock.take(waitMs)
  }

  release(): void {
    if (this.#isLocal()) this.#lock.giveBack()
  }

  async client(): Promise<Client> {
    const client = this.#connect()
    this.#setUp ??= this.#applyPragmas(client)
    try {
      await this.#setUp
    } catch (error) {
      this.#forget()
      throw error
    }
    return client
  }

  /** After SQLITE_BUSY a local client fails at its next COMMIT; a fresh connection does not. */
  async reset(waitMs: number): Promise<void> {
    if (!this.#isLocal() || this.#isClosed) return
    await this.acquire(waitMs)
    try {
      await this.#client?.reconnect()
      this.#setUp = undefined
    } finally {
      this.release()
    }
  }

  async reopen(waitMs: number): Promise<void> {
    if (!this.#isLocal() || this.#isClosed) return
    await this.acquire(waitMs)
    try {
      this.#forget()
    } finally {
      this.release()
    }
  }

  close(): void {
    this.#isClosed = true
    if (!isGiven(this.#config)) this.#client?.close()
    this.#client = undefined
  }

  /** A client that was opened while the file could not be written stays read-only. */
  #forget(): void {
    this.#setUp = undefined
    if (isGiven(this.#config)) return
    this.#client?.close()
    this.#client = undefined
  }

  #connect(): Client {
    if (this.#isClosed) throw new Error('The client is closed')
    this.#client ??= connect(this.#config)
    return this.#client
  }

  async #applyPragmas(client: Client): Promise<void> {
    const { durability } = this
    if (durability === null || !this.#isLocal()) return
    const { rows } = await client.execute('pragma journal_mode = WAL')
    if (!this.#isMemory()) assertWal(rows[0]?.['journal_mode'], this.location)
    for (const pragma of connectionPragmas(durability)) await client.execute(`pragma ${pragma}`)
    const synchronous = await client.execute('pragma synchronous')
    assertSynchronous(synchronous.rows[0]?.['synchronous'], durability, this.location)
  }

  #isLocal(): boolean {
    const config = this.#config
    if (isGiven(config)) return config.client.protocol === 'file'
    return isFile(typeof config === 'string' ? config : config.url)
  }

  #isMemory(): boolean {
    return this.location?.includes(':memory:') ?? false
  }
}

class LibsqlDriver implements Driver {
  readonly #database: LibsqlDatabase

  constructor(database: LibsqlDatabase) {
    this.#database = database
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<LibsqlConnection> {
    await this.#database.acquire()
    return new LibsqlConnection(this.#database)
  }

  async releaseConnection(): Promise<void> {
    this.#database.release()
  }

  async beginTransaction(connection: DatabaseConnection): Promise<void> {
    if (connection instanceof LibsqlConnection) await connection.begin()
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    if (connection instanceof LibsqlConnection) await connection.commit()
  }

  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    if (connection instanceof LibsqlConnection) await connection.rollback()
  }

  async destroy(): Promise<void> {
    this.#database.close()
  }
}

class LibsqlConnection implements DatabaseConnection {
  readonly #database: LibsqlDatabase
  #transaction: Transaction | null = null

  constructor(database: LibsqlDatabase) {
    this.#database = database
  }

  async begin(): Promise<void> {
    this.#transaction = await (await this.#database.client()).transaction('write')
  }

  async commit(): Promise<void> {
    await this.#transaction?.commit()
    this.#transaction = null
  }

  async rollback(): Promise<void> {
    const transaction = this.#transaction
    this.#transaction = null
    if (transaction !== null && !transaction.closed) await transaction.rollback()
    transaction?.close()
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    const target = this.#transaction ?? (await this.#database.client())
    return toQueryResult<R>(await target.execute(toStatement(query)))
  }

  // biome-ignore lint/correctness/useYield: the interface asks for a generator
  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error('This driver does not stream. Read in pages instead.')
  }
}

function connect(config: LibsqlConfig): Client {
  if (isGiven(config)) return config.client
  const own = typeof config === 'string' ? { url: config } : config
  // One connection, because settings belong to connections and the client would open more without them.
  return createClient({ ...own, ...(isFile(own.url) && { concurrency: 1, timeout: 20 }) })
}

function toStatement({ sql, parameters }: CompiledQuery): { sql: string; args: InValue[] } {
  return { sql, args: parameters as InValue[] }
}

function toQueryResult<R>(result: ResultSet): QueryResult<R> {
  return {
    rows: result.rows as R[],
    numAffectedRows: BigInt(result.rowsAffected),
    ...(result.lastInsertRowid !== undefined && { insertId: result.lastInsertRowid }),
  }
}

function isGiven(config: LibsqlConfig): config is { readonly client: Client } {
  return typeof config === 'object' && 'client' in config
}

function isFile(url: string): boolean {
  return url.startsWith('file:') || url.includes(':memory:')
}

/** Tokens may be part of a URL and must not get into messages. */
const CONFIG: OptionNames<Exclude<LibsqlConfig, string>> = {
  client: true,
  url: true,
  authToken: true,
  encryptionKey: true,
  remoteEncryptionKey: true,
  syncUrl: true,
  syncInterval: true,
  readYourWrites: true,
  offline: true,
  tls: true,
  intMode: true,
  fetch: true,
  concurrency: true,
  timeout: true,
}

function refuseBadConfig(config: LibsqlConfig): void {
  if (typeof config === 'string' && config !== '') return
  const { url, client, execute } = Object(config) as Readonly<Record<string, unknown>>
  if (typeof execute === 'function') throw new InvalidOptionError('libsql() takes an open client as { client }.')
  if (typeof config === 'object' && config !== null) refuseMisspelledOptions('libsql()', config, CONFIG)
  if (typeof url === 'string' && url !== '') return
  if (typeof Object(client).execute === 'function') return
  throw new InvalidOptionError("libsql() needs a URL, such as libsql('file:app.db'), or an open client as { client }.")
}

function withoutQuery(url: string): string {
  return url.replace(/[?#].*$/, '')
}
