import { Places } from './places'

/** Of a pool's connections, those that what waits for others' locks never gets, nor a transaction of the application. */
const RESERVED = 2

/** The smallest pool in which a transaction, what goes on beside it, and the renewal of leases have a connection each. */
export const SMALLEST_POOL = RESERVED + 1

/** What a caller takes a connection for. */
export type Purpose = 'transaction' | 'caller' | 'reader'

/**
 * The connections that callers may have at once. Those that may wait for what somebody else holds, for as long as
 * patience lasts, never get the last one together: it carries commits and renewals, and the process goes on. Readers wait
 * for nobody; they are counted so that however many of them come, none of what is sent meanwhile is far behind them.
 */
export class CallerPlaces {
  readonly #waiting: Places
  readonly #of: Readonly<Record<Purpose, Places>>

  constructor(connections: number) {
    const most = Math.max(connections - RESERVED, 1)
    this.#waiting = new Places(Math.max(connections - 1, 1))
    this.#of = { transaction: new Places(most), caller: new Places(most), reader: new Places(most) }
  }

  /** Resolves with how to give the place back. */
  async take(purpose: Purpose, waitMs?: number): Promise<() => void> {
    const deadline = performance.now() + (waitMs ?? 0)
    const own = this.#of[purpose]
    await own.take(waitMs)
    if (purpose === 'reader') return () => own.giveBack()
    try {
      await this.#waiting.take(waitMs === undefined ? undefined : Math.max(deadline - performance.now(), 0))
    } catch (error) {
      own.giveBack()
      throw error
    }
    return () => {
      this.#waiting.giveBack()
      own.giveBack()
    }
  }
}
