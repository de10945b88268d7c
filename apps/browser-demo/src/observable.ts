/** A value with listeners: what React reads through `useSyncExternalStore`. */
export interface Observable<T extends object> {
  get(): T
  set(change: Partial<T>): void
  subscribe(listener: () => void): () => void
}

export function createObservable<T extends object>(initial: T): Observable<T> {
  const listeners = new Set<() => void>()
  let value = initial
  return {
    get: () => value,
    set(change) {
      value = { ...value, ...change }
      for (const listener of listeners) listener()
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}
