import { useSyncExternalStore } from 'react'
import type { Observed } from './observed'

/** Renders again when the value changes. A server, and the page while it takes over, show `first`. */
export function useObserved<T>({ get, subscribe }: Observed<T>, first: T): T {
  return useSyncExternalStore(subscribe, get, () => first)
}

/** What stays as it is. */
export function fixed<T>(value: T): Observed<T> {
  return { get: () => value, subscribe: () => () => {} }
}
