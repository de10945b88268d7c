import { StorageError } from '@coji/durably-core/storage'
import type { ClientConfig, ConnectReason } from 'sqlocal'
import { SQLocalKysely } from 'sqlocal/kysely'
import { within } from '../connection'
import { insecureContext, isForMemory, mayHavePassed, obstacleToOpfs } from './opfs-trouble'
import { assertKept, failureOf, isFile, NO_BUSY_TIMEOUT, UnheardWorker } from './sqlocal-kept'
import { Questions } from './sqlocal-silence'

const CLOSING_MS = 5_000

/** In Firefox one of some thirty workers was seen to start and then to stand still for ever; the next one works. */
const FIRST_TRY_MS = 10_000
/** For slow lines. */
const SECOND_TRY_MS = 50_000

/** Who waits for less has waited for others that were answered. */
const LONG_MS = 2_000

/** Says that an answer is lost because the page was put to sleep before it came. */
export class CutOffBySleep extends StorageError {
  constructor() {
    super('STORAGE_UNAVAILABLE', 'The page was put to sleep in the middle of a call.')
  }
}

/** A client that can be left without asking its worker, which may not answer. */
class OwnClient extends SQLocalKysely {
  readonly #end = new EndOnce()
  #isLeft = false

  constructor(config: ClientConfig) {
    super(config)
    const ask = this.createQuery
    // What was on its way to the worker when it was left is told the cause, when there is one, and not that SQLocal has ended.
    this.createQuery = (message) =>
      ask(message).catch((error: unknown) => (this.#isLeft ? this.#end.reached : Promise.reject(error)))
  }

  /** What it was asked for, and what it will be, rejects. */
  abandon(cause: Error): void {
    this.#end.reach(cause)
    const asked = [...this.queriesInProgress.values()]
    this.queriesInProgress.clear()
    this.createQuery = () => Promise.reject(cause)
    for (const [, reject] of asked) reject(cause)
    this.#endWorker()
  }

  /**
   * Its worker closes the file and ends; nobody hears of that yet. Without the goodbye the worker that SQLite itself has for
   * its files keeps one in a transaction for two more seconds, until the browser ends it by force.
   */
  leave(): void {
    const goodbye = { type: 'destroy', queryKey: crypto.randomUUID(), skipOptimize: true } as const
    if (typeof Worker !== 'undefined' && this.processor instanceof Worker) this.processor.postMessage(goodbye)
    this.#endWorker()
  }

  #endWorker(): void {
    this.#isLeft = true
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
  /** Lets go of the file before the page is put to sleep, in the middle of whatever it is doing. */
  sleep(): void
  /** Rejects what was asked for then; the next use opens the file again. */
  awake(): void
  close(): Promise<void>
}

interface Current {
  readonly client: OwnClient
  /** Rejects when there will be no answer any more. */
  readonly failure: Promise<never>
  readonly abandoned: EndOnce
  readonly isOnFile: boolean
}

/** Opened at the first use, and again when it was lost. */
export class OwnConnection implements SqlocalConnection {
  readonly #config: ClientConfig
  readonly #allowMemory: boolean
  readonly #closed = new EndOnce()
  #current: Current | null = null
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
    return this.#questions.answered([answer, this.#closed.reached, ...failure], (silence) => this.drop(silence))
  }

  whyHeld(): StorageError | null {
    if (this.#opening === null || this.#isOpen) return silent(this.#config.databasePath, this.#questions)
    const ms = performance.now() - this.#openingSince
    return ms < LONG_MS ? null : waitsFor(`${this.#config.databasePath} is still being opened: SQLite's worker`, ms)
  }

  drop(cause: Error = lost('The connection to SQLite was given up.')): void {
    const current = this.#current
    this.#current = null
    this.#opening = null
    this.#isOpen = false
    current?.client.abandon(cause)
    current?.abandoned.reach(cause)
  }

  sleep(): void {
    // What is in memory would be lost.
    if (this.#current?.isOnFile === true) this.#current.client.leave()
  }

  awake(): void {
    if (this.#current?.isOnFile === true) this.drop(new CutOffBySleep())
  }

  async close(): Promise<void> {
    if (this.#closed.isOver) return
    const current = this.#current
    // SQLocal's goodbye waits for the opening, which can take long.
    const goodbye = current !== null && this.#isOpen ? [current.client.destroy(true), current.failure] : []
    this.#closed.reach(closed())
    if (goodbye.length > 0) await endWithin(goodbye)
    this.drop(closed())
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
      this.drop()
      return this.#client(':memory:').client
    }
  }

  async #openKept(databasePath: ClientConfig['databasePath']): Promise<SQLocalKysely> {
    const first = this.#client(databasePath)
    try {
      await assertKept(first.client, { failure: first.failure, withinMs: FIRST_TRY_MS })
      return first.client
    } catch (error) {
      const isWorthAnother = error instanceof UnheardWorker || mayHavePassed(error)
      if (!isWorthAnother || this.#current !== first) throw error
    }
    const unheard = lost('Nothing was heard of the first worker of SQLite, or it could not open the file.')
    this.#current = null
    first.client.abandon(unheard)
    first.abandoned.reach(unheard)
    const second = this.#client(databasePath)
    await assertKept(second.client, { failure: second.failure, withinMs: SECOND_TRY_MS })
    return second.client
  }

  #client(databasePath: ClientConfig['databasePath']) {
    if (globalThis.isSecureContext === false) throw insecureContext(databasePath)
    if (this.#closed.isOver) throw closed()
    if (this.#current === null) {
      const client = this.#create(databasePath)
      const ofWorker = failureOf(client)
      ofWorker.catch((cause: Error) => {
        if (this.#current?.client === client) this.drop(cause)
      })
      const abandoned = new EndOnce()
      const failure = Promise.race([ofWorker, abandoned.reached])
      failure.catch(() => {})
      this.#current = { client, failure, abandoned, isOnFile: isFile(databasePath) }
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

  /** It is the application's: whether it may be ended only that knows. */
  sleep(): void {}

  awake(): void {}

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
class EndOnce {
  readonly reached: Promise<never>
  isOver = false
  #reject: (error: Error) => void = () => {}

  constructor() {
    this.reached = new Promise((_, reject) => {
      this.#reject = reject
    })
    this.reached.catch(() => {})
  }

  reach(cause: Error): void {
    this.isOver = true
    this.#reject(cause)
  }
}

function closed(): StorageError {
  return new StorageError('STORAGE_CLOSED', 'The database was closed.')
}

/** Whether what was asked for was done, nobody knows. */
function lost(message: string): StorageError {
  return new StorageError('STORAGE_UNAVAILABLE', message)
}

async function endWithin(ends: readonly Promise<unknown>[]): Promise<void> {
  await within(Promise.race(ends), CLOSING_MS, { error: closed }).catch(() => {})
}
