import type { Hint, WatchStorage } from '../port'
import { guarded } from '../base'

/** Collects what a write changed and tells it once the write is done. */
export class Hints implements WatchStorage {
  readonly #listeners = new Set<(hint: Hint) => void>()
  #changed = new Set<string>()
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
    const [changed, cancels, areRunsDue] = [this.#changed, [...this.#cancels], this.#runsDue]
    // Who is told may write at once.
    this.#changed = new Set()
    this.#cancels.clear()
    this.#runsDue = false
    for (const runId of changed) this.#tell({ kind: 'run', runId })
    for (const runId of cancels) this.#tell({ kind: 'cancel', runId })
    if (areRunsDue) this.#tell({ kind: 'runs' })
  }

  #tell(hint: Hint): void {
    for (const listener of this.#listeners) tell(listener, hint)
  }
}

/** The write has happened: a listener that fails must not make it look as if it had not. A hint may be lost. */
function tell(listener: (hint: Hint) => void, hint: Hint): void {
  guarded(
    () => listener(hint),
    () => {},
  )
}
