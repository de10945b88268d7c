import type { Observed } from '../src/store'

/** Everything that an observed value was while somebody listened. */
export interface Watching<T> {
  readonly views: readonly T[]
  /** Resolves with the first value, from the present one on, of which this is true. */
  until(isSo: (value: T) => boolean): Promise<T>
  stop(): void
}

export function watch<T>(observed: Observed<T>): Watching<T> {
  const views: T[] = [observed.get()]
  const waiting = new Set<() => void>()
  const stop = observed.subscribe(() => {
    views.push(observed.get())
    for (const look of [...waiting]) look()
  })
  return {
    views,
    until: (isSo) =>
      new Promise((resolve) => {
        const look = () => {
          const value = observed.get()
          if (!isSo(value)) return
          waiting.delete(look)
          resolve(value)
        }
        waiting.add(look)
        look()
      }),
    stop,
  }
}

/** What a test opens when it wants to. */
export interface Gate {
  readonly opened: Promise<void>
  open(): void
}

export function createGate(): Gate {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}
