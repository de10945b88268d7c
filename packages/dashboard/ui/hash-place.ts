import { useSyncExternalStore } from 'react'

interface NavigateOptions {
  readonly replace?: boolean
}

/** Where one is in the page, behind the `#`: a document that no server knows by other addresses can be loaded again. */
function placeNow(): string {
  const place = location.hash.replace(/^#/, '')
  return place.startsWith('/') ? place : '/'
}

function navigate(place: string, { replace = false }: NavigateOptions = {}): void {
  history[replace ? 'replaceState' : 'pushState'](null, '', `#${place}`)
  dispatchEvent(new HashChangeEvent('hashchange'))
}

function listen(onChange: () => void): () => void {
  addEventListener('hashchange', onChange)
  return () => removeEventListener('hashchange', onChange)
}

export function useHashPlace(): [string, typeof navigate] {
  const place = useSyncExternalStore(listen, placeNow)
  return [place.replace(/\?.*$/, ''), navigate]
}

export function useHashSearch(): string {
  return useSyncExternalStore(listen, () => /\?.*$/.exec(placeNow())?.[0] ?? '')
}

export function toHash(place: string): string {
  return `#${place}`
}
