import type { DurablyError } from '@coji/durably-core'
import { StorageError } from '@coji/durably-core/storage'
import type { CompiledQuery, Kysely, Transaction } from 'kysely'
import { Semaphore, isConnectionHeld } from './semaphore'
import { Connections } from './connections'
import { toStorageError } from './driver-errors'
import { resetBareLibsql } from './bare-libsql'
import { CALLERS_LOCK_MS, type DialectHooks, type Rows, type Sender } from '../dialect'
import { plainIntegers } from './integers'
import { pause } from './pause'
import type { StatementTarget, WriteTarget } from '../statement'
import { watchForTrouble } from './trouble-watch'

/** How long a call waits: for a connection of this process and for locks of another one, all together. */
const PATIENCE_MS = 5000

const RETRY_MIN_MS = 1
const RETRY_MAX_MS = 40
/** Where there are several connections each try costs others one of them. */
const SHARED_RETRY_MAX_MS = 400

interface ExecutorOptions {
  readonly db: Kysely<unknown>
  readonly hooks: DialectHooks | null
  /** Sent once before anything else; what the database says to it does not matter. */
  readonly greeting: CompiledQuery | null
  /** The first statement of interactive transactions, where a read must not come first. */
  readonly firstWrite: CompiledQuery | null
  /** One list at a time: the database has one writer anyway, and who waits here waits in order. */
  readonly hasOneWriter: boolean
}

interface Thrown {
  readonly error: unknown
}

/** How far a transaction has come. */
interface TransactionState {
  isStarted: boolean
  /** Of the body. */
  failure: Thrown | null
  /** Of the database, while the body ran. */
  trouble: Thrown | null
  /** What the rollback led to. */
  atEnd: unknown
}

/** Sends statements: in lists that happen wholly or not at all. */
export class Executor implements StatementTarget {
  /** What the application asks for: it never gets the last connection. */
  readonly callers: StatementTarget = {
    write: (list) => this.#write(list, 'caller'),
    writeNow: (list) => this.writeNow(list),
    lockMs: CALLERS_LOCK_MS,
    read: (query) => this.#read(query, 'reader'),
  }

  /** What the application deletes. */
  readonly removers: StatementTarget = {
    write: (list) => this.#write(list, 'remover'),
    read: (query) => this.#read(query, 'reader'),
  }

  /** Without patience where somebody else holds what is written. */
  readonly impatient: WriteTarget = {
    write: async (list) => {
      try {
        return await this.#send(list, () => PATIENCE_MS, 'owner')
      } catch (error) {
        throw this.#toStorageError(error)
      }
    },
  }

  readonly #options: ExecutorOptions
  readonly #connections: Connections
  readonly #writers = new Semaphore()
  #greeted: Promise<void> | null = null

  constructor(options: ExecutorOptions) {
    this.#options = options
    this.#connections = new Connections(options.db)
  }

  /** The first statement must be a write, so that a deferred transaction starts as a writing one. */
  write(list: readonly CompiledQuery[]): Promise<readonly Rows[]> {
    return this.#write(list, 'owner')
  }

  read(query: CompiledQuery): Promise<Rows> {
    return this.#read(query, 'owner')
  }

  /** As `write`, within this very call. `null`: it is for `write`, which also says what was wrong. */
  writeNow(list: readonly CompiledQuery[]): readonly Rows[] | null {
    const { hooks } = this.#options
    if (hooks?.batchNow === undefined || !this.#writers.tryTake()) return null
    try {
      return hooks.batchNow(list)?.map(plainIntegers) ?? null
    } catch {
      return null
    } finally {
      this.#writers.giveBack()
    }
  }

  #write(list: readonly CompiledQuery[], sender: Sender): Promise<readonly Rows[]> {
    if (list.length === 0) return Promise.resolve([])
    return this.#patiently((left) => this.#inTurn(left, () => this.#send(list, left, sender)))
  }

  async #read(query: CompiledQuery, sender: Sender): Promise<Rows> {
    const [rows] = await this.#patiently((left) => this.#send([query], left, sender))
    return rows ?? []
  }

  /**
   * Waits for the database before `body` starts, never afterwards: a body runs once. Its errors come out as they are, or
   * as trouble of the database where they were that, for a caller who will have it run again.
   */
  async transaction<T>(body: (trx: Transaction<unknown>) => Promise<T>, { explainsTrouble = false } = {}): Promise<T> {
    const state: TransactionState = { isStarted: false, failure: null, trouble: null, atEnd: null }
    const guarded = async (trx: Transaction<unknown>): Promise<T> => {
      if (this.#options.firstWrite !== null) await trx.executeQuery(this.#options.firstWrite)
      state.isStarted = true
      const watch = await watchForTrouble(trx)
      try {
        const value = await body(trx)
        const trouble = watch.trouble()
        if (trouble !== null) throw trouble.error
        return value
      } catch (error) {
        state.trouble = watch.trouble()
        state.failure = { error }
        throw error
      } finally {
        watch.end()
      }
    }
    const begin = (left: TimeLeft) =>
      this.#inTurn(left, () =>
        this.#connections.use(left(), (connection) =>
          connection
            .transaction()
            .execute(guarded)
            .catch((error: unknown) => {
              state.atEnd = error
              throw error
            }),
        ),
      )
    try {
      return await this.#patiently(begin, () => !state.isStarted)
    } catch (error) {
      if (state.failure === null) throw error
      throw (explainsTrouble ? this.#troubleOf(state) : null) ?? state.failure.error
    }
  }

  /** The same errors as everywhere for statements that were sent inside a transaction. */
  async explained<T>(work: Promise<T>): Promise<T> {
    try {
      return await work
    } catch (error) {
      throw this.#toStorageError(error)
    }
  }

  /** What was wrong with the database when a body failed, if that was the reason. */
  #troubleOf({ failure, trouble, atEnd }: TransactionState): DurablyError | null {
    if (trouble !== null) return this.#toStorageError(trouble.error)
    // SQLite rolls back by itself for many a reason, and says at the ROLLBACK that there is nothing to roll back.
    if (this.#options.hasOneWriter) return null
    // Nothing but a lost connection keeps such a database from rolling back.
    const { error } = failure ?? {}
    return atEnd === error ? null : new StorageError('STORAGE_UNAVAILABLE', messageOf(atEnd), { cause: error })
  }

  /**
   * Resolves when nothing is under way any more; nothing will be. A pool may never end that is told to while somebody has
   * a connection of it (that of postgres.js). With one writer the database ends what is under way; hooks care for theirs.
   */
  async close(): Promise<void> {
    const { hooks, hasOneWriter } = this.#options
    if (hooks === null && !hasOneWriter) await this.#connections.close()
  }

  #inTurn<T>(left: TimeLeft, work: () => Promise<T>): Promise<T> {
    return this.#options.hasOneWriter ? this.#writers.run(left(), work) : work()
  }

  #toStorageError(error: unknown): DurablyError {
    const { hooks } = this.#options
    if (isConnectionHeld(error)) return hooks?.whyHeld?.() ?? error
    return toStorageError(error, {
      location: hooks?.location ?? null,
      classify: hooks?.classifyError?.bind(hooks),
    })
  }

  async #send(list: readonly CompiledQuery[], left: TimeLeft, sender: Sender): Promise<readonly Rows[]> {
    const { hooks } = this.#options
    if (hooks?.batch !== undefined) return (await hooks.batch(list, left(), sender)).map(plainIntegers)
    await this.#greet(left)
    return this.#connections.use(left(), (connection) =>
      list.length === 1
        ? executeEach(connection, list)
        : this.#begin(connection).execute((trx) => executeEach(trx, list)),
    )
  }

  /** Guards are written for transactions that see what others have committed meanwhile. */
  #begin(connection: Kysely<unknown>) {
    const transaction = connection.transaction()
    return this.#options.hasOneWriter ? transaction : transaction.setIsolationLevel('read committed')
  }

  async #reset(left: TimeLeft): Promise<void> {
    const { hooks } = this.#options
    try {
      if (hooks === null) await this.#connections.use(left(), resetBareLibsql)
      else await hooks.reset?.(left())
    } catch {
      // What is wrong with the connection comes out at the next attempt.
    }
  }

  async #greet(left: TimeLeft): Promise<void> {
    const { greeting } = this.#options
    if (greeting === null) return
    this.#greeted ??= this.#connections.use(left(), async (connection) => {
      // A server may refuse the pragma; then its own setting stays.
      await connection.executeQuery(greeting).catch(() => {})
    })
    try {
      await this.#greeted
    } catch (error) {
      this.#greeted = null
      throw error
    }
  }

  /** Tries again while the database is busy, waiting outside of any lock. All waiting together has one limit. */
  async #patiently<T>(attempt: (left: TimeLeft) => Promise<T>, mayRetry: () => boolean = () => true): Promise<T> {
    const deadline = performance.now() + PATIENCE_MS
    const left = () => Math.max(deadline - performance.now(), 0)
    let delay = RETRY_MIN_MS
    for (;;) {
      try {
        return await attempt(left)
      } catch (thrown) {
        const error = this.#toStorageError(thrown)
        if (!(error instanceof StorageError) || error.code !== 'STORAGE_BUSY') {
          // A connection opened while the file could not be written stays as it is for ever.
          if (error.code === 'STORAGE_READONLY') await this.#options.hooks?.reopen?.(left())
          throw error
        }
        await this.#reset(left)
        if (left() === 0 || !mayRetry()) throw error
        await pause(delay * (0.5 + Math.random()))
        delay = Math.min(delay * 2, this.#options.hasOneWriter ? RETRY_MAX_MS : SHARED_RETRY_MAX_MS)
      }
    }
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Milliseconds that a call may still wait. */
type TimeLeft = () => number

async function executeEach(db: Kysely<unknown>, list: readonly CompiledQuery[]): Promise<readonly Rows[]> {
  const results: Rows[] = []
  for (const query of list) {
    const { rows } = await db.executeQuery<Readonly<Record<string, unknown>>>(query)
    results.push(plainIntegers(rows))
  }
  return results
}
