/** A worker of the browser has no document and is never hidden by itself. */
export function isVisible(): boolean {
  return typeof document === 'undefined' || document.visibilityState === 'visible'
}

/** Calls `fn` when the tab comes back: shown, thawed, or taken from the cache of pages. Returns how to end it. */
export function onReturn(fn: () => void): () => void {
  if (typeof document === 'undefined') return () => {}
  const onChange = () => {
    if (isVisible()) fn()
  }
  document.addEventListener('visibilitychange', onChange)
  document.addEventListener('resume', fn)
  addEventListener('pageshow', fn)
  return () => {
    document.removeEventListener('visibilitychange', onChange)
    document.removeEventListener('resume', fn)
    removeEventListener('pageshow', fn)
  }
}

/** Calls `fn` in the last moment before the tab is frozen. Returns how to end it. */
export function onFreeze(fn: () => void): () => void {
  if (typeof document === 'undefined') return () => {}
  document.addEventListener('freeze', fn)
  return () => document.removeEventListener('freeze', fn)
}

/** Resolves when a frozen tab goes on. */
export function thawed(): Promise<void> {
  return new Promise((resolve) => document.addEventListener('resume', () => resolve(), { once: true }))
}
