import { StorageError } from '@coji/durably-core'
import type { ClientConfig, ConnectReason } from 'sqlocal'
import { SQLocalKysely } from 'sqlocal/kysely'
import { insecureContext, isForMemory, obstacleToOpfs } from './opfs-trouble'
import { assertKept, failureOf, isFile, NO_BUSY_TIMEOUT, UnheardWorker } from './sqlocal-kept'
import { Questions } from './sqlocal-silence'

const CLOSING_MS = 5_000

/** In Firefox one of some thirty workers was seen to start and then to stand still for ever; the next one works. */
const FIRST_TRY_MS = 10_000
/** For slow lines. */
const SECOND_TRY_MS = 50_000

/** Who waits for less has waited for others that were answered. */
const LONG_MS = 2_000

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
  /** What keeps those waiting who wait for the connection, unless it is a transaction. */
  whyHeld(): StorageError | null
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
  readonly #questions: Questions
  #opening: Promise<SQLocalKysely> | null = null
  #openingSince = 0
  #isOpen = false

  constructor(config: ClientConfig, { allowMemory = false }: { readonly allowMemory?: boolean | undefined } = {}) {
    this.#config = config
    this.#allowMemory = allowMemory
    this.#questions = new Questions(isFile(config.databasePath) ? config.databasePath : null)
  }

  get client(): SQLocalKysely {
    return this.#client(this.#config.databasePath).client
  }

  open(): Promise<SQLocalKysely> {
    if (this.#closed.isOver) return this.#closed.reached
    if (this.#opening === null) {
      const opening = Promise.race([this.#open(), this.#closed.reached])
      this.#opening = opening
      this.#openingSince = performance.now()
      opening.catch(() => {
        if (this.#opening === opening) this.drop()
      })
    }
    return this.#opening
  }

  async answered<T>(answer: Promise<T>): Promise<T> {
    const failure = this.#current === null ? [] : [this.#current.failure]
    return this.#questions.answered([answer, this.#closed.reached, ...failure], () => this.drop())
  }

  whyHeld(): StorageError | null {
    if (this.#opening === null || this.#isOpen) return silent(this.#config.databasePath, this.#questions)
    const ms = performance.now() - this.#openingSince
    return ms < LONG_MS ? null : waitsFor(`${this.#config.databasePath} is still being opened: SQLite's worker`, ms)
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
      return await this.#openKept(databasePath)
    } catch (error) {
      // A file that could be kept, if it were not held or full, is not to be replaced by nothing.
      if (!this.#allowMemory || !isForMemory(error)) throw error
      this.#current?.client.abandon()
      this.#current = null
      return this.#client(':memory:').client
    }
  }

  async #openKept(databasePath: ClientConfig['databasePath']): Promise<SQLocalKysely> {
    const first = this.#client(databasePath)
    try {
      await assertKept(first.client, { failure: first.failure, withinMs: FIRST_TRY_MS })
      return first.client
    } catch (error) {
      if (!(error instanceof UnheardWorker) || this.#current !== first) throw error
    }
    first.client.abandon()
    this.#current = null
    const second = this.#client(databasePath)
    await assertKept(second.client, { failure: second.failure, withinMs: SECOND_TRY_MS })
    return second.client
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
  readonly #questions: Questions
  #checking: Promise<SQLocalKysely> | null = null
  #closing: Promise<void> | null = null

  constructor(client: SQLocalKysely) {
    const { databasePath } = client['config']
    this.client = client
    this.#failure = failureOf(client)
    this.#questions = new Questions(isFile(databasePath) ? databasePath : null)
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
    return this.#questions.answered([answer, this.#failure])
  }

  whyHeld(): StorageError | null {
    return silent(this.client['config'].databasePath, this.#questions)
  }

  drop(): void {
    this.#checking = null
  }

  close(): Promise<void> {
    this.#closing ??= endWithin([this.client.destroy(), this.#failure])
    return this.#closing
  }

  async #check(): Promise<SQLocalKysely> {
    await assertKept(this.client, { failure: this.#failure })
    await this.answered(this.client.sql(NO_BUSY_TIMEOUT))
    return this.client
  }
}

function silent(file: string, { waitMs }: Questions): StorageError | null {
  return waitMs === null || waitMs < LONG_MS ? null : waitsFor(`${file}: the worker of SQLite`, waitMs)
}

/** The call that says so has sent nothing itself. */
function waitsFor(whom: string, ms: number): StorageError {
  return new StorageError(
    'STORAGE_UNAVAILABLE',
    `${whom} has not answered for ${Math.round(ms / 1000)} s. If it has died, another is started within seconds: try again then.`,
    { mayHaveArrived: false },
  )
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
