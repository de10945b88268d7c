import { useSyncExternalStore } from 'react'

const NARROW = matchMedia('(max-width: 799px)')

function subscribe(listener: () => void): () => void {
  NARROW.addEventListener('change', listener)
  return () => NARROW.removeEventListener('change', listener)
}

/** As `layout.css` has it. */
export function useNarrow(): boolean {
  return useSyncExternalStore(subscribe, () => NARROW.matches)
}
