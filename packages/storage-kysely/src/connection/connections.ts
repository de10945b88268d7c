import { StorageError } from '@coji/durably-core/storage'
import type { Kysely } from 'kysely'
import { connectionHeld } from './semaphore'

/** Nobody counts on an answer any more that takes longer, as on the pool of `postgres()`. */
const LONGEST_USE_MS = 35_000

/** The connections that Kysely lends, and how many are asked for or in use. */
export class Connections {
  readonly #db: Kysely<unknown>
  #lent = 0
  #closing: Promise<void> | null = null
  #onAllBack: () => void = () => {}

  constructor(db: Kysely<unknown>) {
    this.#db = db
  }

  /** Who waits longer for one than allowed gets `CONNECTION_HELD`; it is given back when it comes. */
  use<T>(waitMs: number, work: (connection: Kysely<unknown>) => Promise<T>): Promise<T> {
    if (this.#closing !== null) return Promise.reject(new StorageError('STORAGE_CLOSED', 'The database was closed.'))
    this.#lent += 1
    return new Promise((resolve, reject) => {
      let isLate = false
      const timer = setTimeout(() => {
        isLate = true
        reject(connectionHeld())
      }, waitMs)
      const run = async (connection: Kysely<unknown>) => {
        clearTimeout(timer)
        if (!isLate) resolve(await work(connection))
      }
      this.#db
        .connection()
        .execute(run)
        .then(
          () => this.#takeBack(),
          (error: unknown) => {
            clearTimeout(timer)
            this.#takeBack()
            reject(error)
          },
        )
    })
  }

  /** Lends none any more. Resolves when all are back, or will hardly come. */
  close(): Promise<void> {
    this.#closing ??= this.#lent === 0 ? Promise.resolve() : this.#untilAllBack()
    return this.#closing
  }

  #untilAllBack(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, LONGEST_USE_MS)
      this.#onAllBack = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  #takeBack(): void {
    this.#lent -= 1
    if (this.#lent === 0) this.#onAllBack()
  }
}
