import type { StorageError } from '../base'
import type { StepWrite } from '../port'

/** What one event of joined chunks, and one commit for chunks alone, should not exceed. */
export const CHUNKS_TOGETHER = 64 * 1024

/** More than this is not kept in memory while the database is away. */
const MAX_UNSTORED = 1024 * 1024

interface Sized {
  readonly chunk?: { readonly length: number }
}

/** How much of the streams of one execution is not stored yet, in characters of JSON. */
export class ChunkBacklog {
  #gathered = 0
  #unstored = 0
  #waiting: (() => void)[] = []

  /** Not on its way yet. */
  get gathered(): number {
    return this.#gathered
  }

  /** Settles at once, or when there is room again. */
  add(length: number): Promise<void> {
    this.#gathered += length
    this.#unstored += length
    if (this.#unstored <= MAX_UNSTORED) return Promise.resolve()
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  take(pieces: readonly Sized[]): void {
    this.#gathered -= lengthOf(pieces)
  }

  giveBack(pieces: readonly Sized[]): void {
    this.#gathered += lengthOf(pieces)
  }

  /** Stored, or never to be. */
  settle(pieces: readonly Sized[]): void {
    this.#unstored -= lengthOf(pieces)
    if (this.#unstored > MAX_UNSTORED) return
    for (const goOn of this.#waiting.splice(0)) goOn()
  }
}

function lengthOf(pieces: readonly Sized[]): number {
  return pieces.reduce((sum, { chunk }) => sum + (chunk?.length ?? 0), 0)
}

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
