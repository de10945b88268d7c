import { guarded } from '../guarded'
import type { Hint, WatchStorage } from '../storage'

/** Collects what a write changed and tells it once the write is done. */
export class Hints implements WatchStorage {
  readonly #listeners = new Set<(hint: Hint) => void>()
  readonly #changed = new Set<string>()
  readonly #cancels = new Set<string>()
  #runsDue = false

  subscribe(listener: (hint: Hint) => void): () => void {
    // A function of its own, so that one listener subscribed twice is two subscriptions.
    const own = (hint: Hint) => listener(hint)
    this.#listeners.add(own)
    return () => this.#listeners.delete(own)
  }

  noteChanged(runId: string): void {
    if (this.#listeners.size > 0) this.#changed.add(runId)
  }

  noteCancel(runId: string): void {
    if (this.#listeners.size > 0) this.#cancels.add(runId)
  }

  noteDue(): void {
    this.#runsDue = true
  }

  flush(): void {
    if (this.#changed.size === 0 && !this.#runsDue) return
    const hints: Hint[] = [...this.#changed].map((runId) => ({ kind: 'run', runId }))
    for (const runId of this.#cancels) hints.push({ kind: 'cancel', runId })
    if (this.#runsDue) hints.push({ kind: 'runs' })
    this.#cancels.clear()
    this.#changed.clear()
    this.#runsDue = false
    for (const hint of hints) for (const listener of this.#listeners) tell(listener, hint)
  }
}

/** The write has happened: a listener that fails must not make it look as if it had not. A hint may be lost. */
function tell(listener: (hint: Hint) => void, hint: Hint): void {
  guarded(
    () => listener(hint),
    () => {},
  )
}
