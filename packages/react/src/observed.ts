/** A value that changes, as `useSyncExternalStore` and everybody else may read it. */
export interface Observed<T> {
  /** The same object until it changes. */
  get(): T
  /** The value is kept up to date while somebody listens. */
  subscribe(listener: () => void): () => void
}

/** Keeps a value up to date until the function is called that it returns. */
export type Keep = () => () => void

/** A value with listeners, which somebody keeps up to date from the first listener to the last. */
export class Kept<T> implements Observed<T> {
  readonly #listeners = new Set<() => void>()
  readonly #keep: Keep
  #value: T
  #stop: (() => void) | null = null

  constructor(initial: T, keep: Keep) {
    this.#value = initial
    this.#keep = keep
  }

  get isKept(): boolean {
    return this.#stop !== null
  }

  readonly get = (): T => this.#value

  readonly subscribe = (listener: () => void): (() => void) => {
    // Of its own, so that the same function can listen twice.
    const added = () => listener()
    this.#listeners.add(added)
    this.#stop ??= this.#keep()
    return () => {
      this.#listeners.delete(added)
      // Who leaves may be back at once: StrictMode does it to every component, and so do pages that take turns.
      if (this.#listeners.size === 0) setTimeout(() => this.#rest(), 0)
    }
  }

  set(value: T): void {
    if (Object.is(value, this.#value)) return
    this.#value = value
    for (const listener of [...this.#listeners]) listener()
  }

  /** Nobody is told any more. */
  close(): void {
    this.#listeners.clear()
    this.#rest()
  }

  #rest(): void {
    if (this.#listeners.size > 0) return
    this.#stop?.()
    this.#stop = null
  }
}
