import { useMemo } from 'react'
import { UNREAD, type ReadView } from './live-read'
import { useRunStore } from './provider'
import { useObserved } from './use-observed'

/**
 * Anything else about runs, such as their counts, read again whenever runs change. What has the same key is the same, and is
 * read once however many components show it.
 */
export function useRead<T>(key: string, read: () => Promise<T>): ReadView<T> {
  const store = useRunStore()
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key says what is read; the function is new at each render
  const observed = useMemo(() => store.read(key, read), [store, key])
  return useObserved<ReadView<T>>(observed, UNREAD)
}
