import { useSyncExternalStore } from 'react'
import type { Observable } from '../observable'

/** Renders again when the chosen part is another than before. */
export function useStateOf<T extends object, TPart>(observable: Observable<T>, part: (value: T) => TPart): TPart {
  return useSyncExternalStore(observable.subscribe, () => part(observable.get()))
}
