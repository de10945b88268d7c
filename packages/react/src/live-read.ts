import { coalesce, type Coalesced } from './coalesce'
import { Kept, type Observed } from './observed'
import type { RunHints } from './run-hints'
import { delayAfter, toError } from './trouble'

const READ_EVERY_MS = 250

/** What was read of the runs, and is read again when they change. */
export interface ReadView<T> {
  /** `null` until it has been read. */
  readonly value: T | null
  /** It has not been read yet. */
  readonly isLoading: boolean
  /** Reading fails, and is tried again; the value is what was read before. */
  readonly trouble: Error | null
}

export const UNREAD: ReadView<never> = { value: null, isLoading: true, trouble: null }

/** Reads something again whenever runs change, while somebody listens. */
export class LiveRead<T> implements Observed<ReadView<T>> {
  readonly #kept: Kept<ReadView<T>>
  readonly #refresh: Coalesced
  #failures = 0

  constructor(hints: RunHints, read: () => Promise<T>) {
    this.#refresh = coalesce(READ_EVERY_MS, () => this.#read(read))
    this.#kept = new Kept<ReadView<T>>(UNREAD, () => {
      const stopListening = hints.listen(({ isUrgent }) => (isUrgent ? this.#refresh.now() : this.#refresh.soon()))
      const stopWanting = hints.want()
      this.#refresh.now()
      return () => {
        stopListening()
        stopWanting()
        this.#refresh.callOff()
      }
    })
  }

  readonly get = (): ReadView<T> => this.#kept.get()
  readonly subscribe = (listener: () => void): (() => void) => this.#kept.subscribe(listener)

  get isKept(): boolean {
    return this.#kept.isKept
  }

  readonly refresh = (): void => {
    if (this.isKept) this.#refresh.now()
  }

  close(): void {
    this.#kept.close()
  }

  async #read(read: () => Promise<T>): Promise<void> {
    try {
      const value = await read()
      this.#failures = 0
      this.#kept.set({ value, isLoading: false, trouble: null })
    } catch (error) {
      this.#failures += 1
      this.#kept.set({ ...this.#kept.get(), trouble: toError(error) })
      if (this.isKept) setTimeout(() => this.isKept && this.#refresh.soon(), delayAfter(this.#failures))
    }
  }
}
