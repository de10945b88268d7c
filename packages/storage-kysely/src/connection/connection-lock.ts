import { StorageError } from '@coji/durably-core/storage'

/** First come, first served. Who waits longer than allowed gets `CONNECTION_HELD` and has done nothing. */
export class ConnectionLock {
  #isHeld = false
  readonly #waiting: (() => void)[] = []

  tryLock(): boolean {
    if (this.#isHeld) return false
    this.#isHeld = true
    return true
  }

  /** Resolves when the lock is taken. Without `waitMs` it waits for as long as it takes. */
  async lock(waitMs?: number): Promise<void> {
    if (this.tryLock()) return
    await new Promise<void>((resolve, reject) => {
      const timer = waitMs === undefined ? undefined : setTimeout(giveUp, waitMs)
      const waiting = this.#waiting
      function take() {
        clearTimeout(timer)
        resolve()
      }
      function giveUp() {
        waiting.splice(waiting.indexOf(take), 1)
        reject(connectionHeld())
      }
      waiting.push(take)
    })
  }

  unlock(): void {
    const next = this.#waiting.shift()
    if (next === undefined) this.#isHeld = false
    else next()
  }

  async run<T>(waitMs: number, body: () => Promise<T>): Promise<T> {
    if (!this.tryLock()) await this.lock(waitMs)
    try {
      return await body()
    } finally {
      this.unlock()
    }
  }
}

export function connectionHeld(): StorageError {
  return new StorageError(
    'CONNECTION_HELD',
    'The database connection is in use by a transaction of this process, and it was not released in time. Nothing was ' +
      'sent. Keep transactions short, or give durably a connection of its own.',
  )
}

export function isConnectionHeld(error: unknown): error is StorageError {
  return error instanceof StorageError && error.code === 'CONNECTION_HELD'
}
