import { StorageError } from '@coji/durably-core/storage'

/** What so many may have at once, such as a connection. First come, first served. */
export class Semaphore {
  #free: number
  readonly #waiting: (() => void)[] = []

  constructor(count = 1) {
    this.#free = count
  }

  tryTake(): boolean {
    if (this.#free === 0) return false
    this.#free -= 1
    return true
  }

  /** Without `waitMs` it waits for as long as it takes; with it, it throws `CONNECTION_HELD` and has taken nothing. */
  async take(waitMs?: number): Promise<void> {
    if (this.tryTake()) return
    await new Promise<void>((resolve, reject) => {
      const waiting = this.#waiting
      const timer = waitMs === undefined ? undefined : setTimeout(giveUp, waitMs)
      function enter() {
        clearTimeout(timer)
        resolve()
      }
      function giveUp() {
        waiting.splice(waiting.indexOf(enter), 1)
        reject(connectionHeld())
      }
      waiting.push(enter)
    })
  }

  giveBack(): void {
    const next = this.#waiting.shift()
    if (next === undefined) this.#free += 1
    else next()
  }

  async run<T>(waitMs: number, body: () => Promise<T>): Promise<T> {
    if (!this.tryTake()) await this.take(waitMs)
    try {
      return await body()
    } finally {
      this.giveBack()
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
