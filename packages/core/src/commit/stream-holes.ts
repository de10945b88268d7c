import type { StorageError } from '../base'
import type { StepWrite } from '../port'

/** The streams of one execution that lack a chunk which the storage will never take. They must not end well. */
export class StreamHoles {
  readonly #refusals = new Map<string, StorageError>()

  note(rowId: string, refusal: StorageError): void {
    this.#refusals.set(rowId, refusal)
  }

  /** Everything is said anew. */
  fill(rowId: string): void {
    this.#refusals.delete(rowId)
  }

  refusalOf(rowId: string): StorageError | undefined {
    return this.#refusals.get(rowId)
  }

  /** Of rows of which one is the good end of such a stream. */
  refusalIn(writes: readonly StepWrite[] = []): StorageError | undefined {
    if (this.#refusals.size === 0) return undefined
    const end = writes.find(({ id, status }) => status === 'completed' && this.#refusals.has(id))
    return end === undefined ? undefined : this.#refusals.get(end.id)
  }
}
