import { Semaphore } from '../connection'

/** Of a pool's connections, those that no single kind of callers gets. */
const RESERVED = 2

/** The smallest pool in which a transaction, what goes on beside it, and the renewal of leases have a connection each. */
export const SMALLEST_POOL = RESERVED + 1

/** What a caller takes a connection for. */
export type Purpose = 'transaction' | 'caller' | 'reader'

/**
 * The connections that callers may have at once: all kinds of them together never get the last one, which carries commits
 * and renewals, so that the process goes on whatever they wait for. In a smaller pool there is none to keep.
 */
export class CallerPlaces {
  readonly #all: Semaphore
  readonly #of: Readonly<Record<Purpose, Semaphore>>

  constructor(connections: number) {
    const most = Math.max(connections - RESERVED, 1)
    this.#all = new Semaphore(connections < SMALLEST_POOL ? connections : connections - 1)
    this.#of = { transaction: new Semaphore(most), caller: new Semaphore(most), reader: new Semaphore(most) }
  }

  /** Resolves with how to give the place back. */
  async take(purpose: Purpose, waitMs?: number): Promise<() => void> {
    const deadline = performance.now() + (waitMs ?? 0)
    const own = this.#of[purpose]
    await own.take(waitMs)
    try {
      await this.#all.take(waitMs === undefined ? undefined : Math.max(deadline - performance.now(), 0))
    } catch (error) {
      own.giveBack()
      throw error
    }
    return () => {
      this.#all.giveBack()
      own.giveBack()
    }
  }
}
