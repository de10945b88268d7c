import type { Hint, WatchStorage } from '@coji/durably-core/storage'

/** Where hints go beside the engines of this process. */
interface Beyond {
  pass(hint: Hint): void
  listen(): void
  rest(): void
}

/** Hints to the engines of one process that share the storage. Losing one costs a poll interval. */
export class Watchers implements WatchStorage {
  readonly #listeners = new Set<(hint: Hint) => void>()
  /** Those who are to hear of other processes. */
  readonly #keen = new Set<(hint: Hint) => void>()
  #beyond: Beyond | null = null

  /** Everything noted here goes there as well. */
  connect(beyond: Beyond): void {
    this.#beyond = beyond
  }

  subscribe(listener: (hint: Hint) => void, { fromElsewhere = false } = {}): () => void {
    // A wrapper of its own, so that one listener subscribed twice is called twice and leaves once.
    const own = (hint: Hint) => listener(hint)
    this.#listeners.add(own)
    if (fromElsewhere) {
      this.#keen.add(own)
      this.#beyond?.listen()
    }
    return () => {
      this.#listeners.delete(own)
      this.#keen.delete(own)
    }
  }

  rest(): void {
    if (this.#keen.size === 0) this.#beyond?.rest()
  }

  noteDue(): void {
    this.#note({ kind: 'runs' })
  }

  /** Somebody wants a running run cancelled. */
  noteCancel(runId: string): void {
    this.#note({ kind: 'cancel', runId })
  }

  noteChanged(runIds: Iterable<string>): void {
    if (this.#listeners.size === 0 && this.#beyond === null) return
    for (const runId of new Set(runIds)) this.#note({ kind: 'run', runId })
  }

  /** A hint from elsewhere. */
  tell(hint: Hint): void {
    for (const listener of this.#listeners) {
      // A hint is a courtesy; who fails at it must not fail the write that was done.
      try {
        const result: unknown = listener(hint)
        if (result instanceof Promise) result.catch(() => {})
      } catch {}
    }
  }

  #note(hint: Hint): void {
    this.tell(hint)
    this.#beyond?.pass(hint)
  }
}
