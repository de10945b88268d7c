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
