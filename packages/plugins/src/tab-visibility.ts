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
  const offAwake = onAwake(fn)
  return () => {
    document.removeEventListener('visibilitychange', onChange)
    offAwake()
  }
}

/**
 * Calls `fn` in the last moment before the page runs nothing any more: it is frozen, put into the cache of pages, or left
 * for good. Once or more often; returns how to end it.
 */
export function onSleep(fn: () => void): () => void {
  if (typeof document === 'undefined') return () => {}
  document.addEventListener('freeze', fn)
  addEventListener('pagehide', fn)
  return () => {
    document.removeEventListener('freeze', fn)
    removeEventListener('pagehide', fn)
  }
}

/** Calls `fn` when a page that slept goes on. Returns how to end it. */
export function onAwake(fn: () => void): () => void {
  if (typeof document === 'undefined') return () => {}
  document.addEventListener('resume', fn)
  addEventListener('pageshow', fn)
  return () => {
    document.removeEventListener('resume', fn)
    removeEventListener('pageshow', fn)
  }
}

/** Resolves when a page that sleeps goes on. */
export function awake(): Promise<void> {
  return new Promise((resolve) => {
    const off = onAwake(() => {
      off()
      resolve()
    })
  })
}
