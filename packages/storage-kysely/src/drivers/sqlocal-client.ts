import { StorageError } from '@coji/durably-core'
import type { ClientConfig, ConnectReason } from 'sqlocal'
import { SQLocalKysely } from 'sqlocal/kysely'
import { insecureContext, obstacleToOpfs } from './opfs-trouble'
import { assertKept, isFile, NO_BUSY_TIMEOUT, workerFailed } from './sqlocal-kept'

const CLOSING_MS = 5_000

/** A client whose worker may fail without leaving calls waiting for ever. */
class WatchedClient extends SQLocalKysely {
  /** Rejects when the worker is gone. */
  readonly failure: Promise<never>

  constructor(config: ClientConfig) {
    super(config)
    this.failure = new Promise((_, reject) => {
      if (!isWorker(this.processor)) return
      this.processor.addEventListener('error', (event) => {
        event.preventDefault()
        reject(workerFailed(event.message))
      })
    })
    this.failure.catch(() => {})
  }

  /** Without asking the worker, which may not answer. */
  abandon(): void {
    if (isWorker(this.processor)) this.processor.terminate()
    this.reinitChannel.close()
    this.isDestroyed = true
  }
}

interface ConnectionOptions {
  readonly config: ClientConfig
  readonly allowMemory: boolean
}

/** The connection of one tab to its file: opened at the first use, and again when it was lost. */
export class SqlocalConnection {
  readonly #options: ConnectionOptions
  #client: WatchedClient | null = null
  #opening: Promise<WatchedClient> | null = null

  constructor(options: ConnectionOptions) {
    this.#options = options
  }

  /** For what SQLocal can do beyond queries; not yet known to work. */
  get client(): SQLocalKysely {
    this.#client ??= this.#create(this.#options.config.databasePath)
    return this.#client
  }

  /** The client, once it is known to keep what it is given. */
  open(): Promise<SQLocalKysely> {
    this.#opening ??= this.#open().catch((error: unknown) => {
      this.drop()
      throw error
    })
    return this.#opening
  }

  /** The answer of the worker, or that it failed meanwhile. */
  answered<T>(answer: Promise<T>): Promise<T> {
    return this.#client === null ? answer : Promise.race([answer, this.#client.failure])
  }

  /** The next use opens it again. */
  drop(): void {
    this.#client?.abandon()
    this.#client = null
    this.#opening = null
  }

  async close(): Promise<void> {
    const client = this.#client
    this.#client = null
    this.#opening = Promise.reject(closed())
    this.#opening.catch(() => {})
    if (client === null) return
    await Promise.race([client.destroy(true), client.failure, after(CLOSING_MS)]).catch(() => {})
    client.abandon()
  }

  async #open(): Promise<WatchedClient> {
    const { config, allowMemory } = this.#options
    const { databasePath } = config
    if (!isFile(databasePath)) return this.#created(databasePath)
    try {
      const obstacle = obstacleToOpfs(databasePath)
      if (obstacle !== null) throw obstacle
      const client = this.#created(databasePath)
      await assertKept(client, client.failure)
      return client
    } catch (error) {
      if (!allowMemory) throw error
      this.#client?.abandon()
      this.#client = null
      return this.#created(':memory:')
    }
  }

  #created(databasePath: ClientConfig['databasePath']): WatchedClient {
    if (globalThis.isSecureContext === false) throw insecureContext(databasePath)
    this.#client ??= this.#create(databasePath)
    return this.#client
  }

  #create(databasePath: ClientConfig['databasePath']): WatchedClient {
    const onConnect = (reason: ConnectReason) => {
      // The file was replaced or deleted, and SQLocal opened it again: into memory, where that failed.
      if (reason !== 'initial') this.#opening = null
      this.#options.config.onConnect?.(reason)
    }
    const onInit: ClientConfig['onInit'] = (sql) => [
      { sql: NO_BUSY_TIMEOUT, params: [] },
      ...(this.#options.config.onInit?.(sql) ?? []),
    ]
    return new WatchedClient({ ...this.#options.config, databasePath, onInit, onConnect })
  }
}

function closed(): StorageError {
  return new StorageError('STORAGE_CLOSED', 'The database was closed.')
}

function isWorker(processor: unknown): processor is Worker {
  return typeof Worker !== 'undefined' && processor instanceof Worker
}

function after(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
