import { StorageError } from '@coji/durably-core'
import type { ClientConfig, ConnectReason } from 'sqlocal'
import { SQLocalKysely } from 'sqlocal/kysely'
import { insecureContext, isForMemory, obstacleToOpfs } from './opfs-trouble'
import { assertKept, failureOf, isFile, NO_BUSY_TIMEOUT } from './sqlocal-kept'

const CLOSING_MS = 5_000

/** Far longer than anything takes: who is not answered by then has no worker any more. */
const LONGEST_ANSWER_MS = 60_000

/** A client that can be left without asking its worker, which may not answer. */
class OwnClient extends SQLocalKysely {
  abandon(): void {
    if (typeof Worker !== 'undefined' && this.processor instanceof Worker) this.processor.terminate()
    this.reinitChannel.close()
    this.isDestroyed = true
  }
}

/** One tab's way to its file. */
export interface SqlocalConnection {
  /** For what SQLocal can do beyond queries; not yet known to work. */
  readonly client: SQLocalKysely
  /** The client, once it is known to keep what it is given. */
  open(): Promise<SQLocalKysely>
  /** The answer of the worker, or that it failed meanwhile. */
  answered<T>(answer: Promise<T>): Promise<T>
  /** The next use opens it again, where that is possible. */
  drop(): void
  close(): Promise<void>
}

/** Opened at the first use, and again when it was lost. */
export class OwnConnection implements SqlocalConnection {
  readonly #config: ClientConfig
  readonly #allowMemory: boolean
  readonly #closed = new Ending(() => new StorageError('STORAGE_CLOSED', 'The database was closed.'))
  #current: { readonly client: OwnClient; readonly failure: Promise<never> } | null = null
  #opening: Promise<SQLocalKysely> | null = null
  #isOpen = false

  constructor(config: ClientConfig, { allowMemory = false }: { readonly allowMemory?: boolean | undefined } = {}) {
    this.#config = config
    this.#allowMemory = allowMemory
  }

  get client(): SQLocalKysely {
    return this.#client(this.#config.databasePath).client
  }

  open(): Promise<SQLocalKysely> {
    if (this.#closed.isOver) return this.#closed.reached
    if (this.#opening === null) {
      const opening = Promise.race([this.#open(), this.#closed.reached])
      this.#opening = opening
      opening.catch(() => {
        if (this.#opening === opening) this.drop()
      })
    }
    return this.#opening
  }

  async answered<T>(answer: Promise<T>): Promise<T> {
    const failure = this.#current === null ? [] : [this.#current.failure]
    let timer: ReturnType<typeof setTimeout> | undefined
    const silence = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        this.drop()
        reject(new StorageError('STORAGE_UNAVAILABLE', 'The worker of SQLite does not answer any more.'))
      }, LONGEST_ANSWER_MS)
    })
    try {
      return await Promise.race([answer, this.#closed.reached, silence, ...failure])
    } finally {
      clearTimeout(timer)
    }
  }

  drop(): void {
    this.#current?.client.abandon()
    this.#current = null
    this.#opening = null
    this.#isOpen = false
  }

  async close(): Promise<void> {
    if (this.#closed.isOver) return
    const current = this.#current
    // SQLocal's goodbye waits for the opening, which can take long.
    const goodbye = current !== null && this.#isOpen ? [current.client.destroy(true), current.failure] : []
    this.#closed.reach()
    if (goodbye.length > 0) await endWithin(goodbye)
    this.drop()
  }

  async #open(): Promise<SQLocalKysely> {
    const { databasePath } = this.#config
    const client = isFile(databasePath) ? await this.#openFile(databasePath) : this.#client(databasePath).client
    this.#isOpen = true
    return client
  }

  async #openFile(databasePath: ClientConfig['databasePath']): Promise<SQLocalKysely> {
    try {
      const obstacle = obstacleToOpfs(databasePath)
      if (obstacle !== null) throw obstacle
      const { client, failure } = this.#client(databasePath)
      await assertKept(client, failure)
      return client
    } catch (error) {
      // A file that could be kept, if it were not held or full, is not to be replaced by nothing.
      if (!this.#allowMemory || !isForMemory(error)) throw error
      this.#current?.client.abandon()
      this.#current = null
      return this.#client(':memory:').client
    }
  }

  #client(databasePath: ClientConfig['databasePath']) {
    if (globalThis.isSecureContext === false) throw insecureContext(databasePath)
    if (this.#closed.isOver) throw this.#closed.cause()
    if (this.#current === null) {
      const client = this.#create(databasePath)
      const failure = failureOf(client)
      failure.catch(() => {
        if (this.#current?.client === client) this.drop()
      })
      this.#current = { client, failure }
    }
    return this.#current
  }

  #create(databasePath: ClientConfig['databasePath']): OwnClient {
    const config = this.#config
    const onConnect = (reason: ConnectReason) => {
      // The file was replaced or deleted, and SQLocal opened it again: into memory, where that failed.
      if (reason !== 'initial' && !this.#closed.isOver) this.#opening = null
      config.onConnect?.(reason)
    }
    const onInit: ClientConfig['onInit'] = (sql) => [
      { sql: NO_BUSY_TIMEOUT, params: [] },
      ...(config.onInit?.(sql) ?? []),
    ]
    return new OwnClient({ ...config, databasePath, onInit, onConnect })
  }
}

/** A client of the application's cannot be opened again: when its worker is gone, so is the database. */
export class GivenConnection implements SqlocalConnection {
  readonly client: SQLocalKysely
  readonly #failure: Promise<never>
  #checking: Promise<SQLocalKysely> | null = null
  #closing: Promise<void> | null = null

  constructor(client: SQLocalKysely) {
    this.client = client
    this.#failure = failureOf(client)
  }

  open(): Promise<SQLocalKysely> {
    if (this.#checking === null) {
      const checking = this.#check()
      this.#checking = checking
      checking.catch(() => this.drop())
    }
    return this.#checking
  }

  answered<T>(answer: Promise<T>): Promise<T> {
    return Promise.race([answer, this.#failure])
  }

  drop(): void {
    this.#checking = null
  }

  close(): Promise<void> {
    this.#closing ??= endWithin([this.client.destroy(), this.#failure])
    return this.#closing
  }

  async #check(): Promise<SQLocalKysely> {
    await assertKept(this.client, this.#failure)
    await this.answered(this.client.sql(NO_BUSY_TIMEOUT))
    return this.client
  }
}

/** Something that is over once and for all. */
class Ending {
  readonly cause: () => Error
  readonly reached: Promise<never>
  isOver = false
  #reject: (error: Error) => void = () => {}

  constructor(cause: () => Error) {
    this.cause = cause
    this.reached = new Promise((_, reject) => {
      this.#reject = reject
    })
    this.reached.catch(() => {})
  }

  reach(): void {
    this.isOver = true
    this.#reject(this.cause())
  }
}

async function endWithin(ends: readonly Promise<unknown>[]): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const patience = new Promise((resolve) => {
    timer = setTimeout(resolve, CLOSING_MS)
  })
  await Promise.race([...ends, patience]).catch(() => {})
  clearTimeout(timer)
}
