/** So long a tab is out of sight before it gives its connections back: a browser has six for all tabs of a site. */
const PATIENCE_MS = 20_000

/** Runs `start` while the page can be seen, and what it returned when it cannot. */
export function whileVisible(start: () => () => void): () => void {
  let stop: (() => void) | null = start()
  let timer: ReturnType<typeof setTimeout> | undefined
  const look = () => {
    clearTimeout(timer)
    if (document.visibilityState === 'visible') stop ??= start()
    else timer = setTimeout(leave, PATIENCE_MS)
  }
  const leave = () => {
    stop?.()
    stop = null
  }
  document.addEventListener('visibilitychange', look)
  return () => {
    clearTimeout(timer)
    document.removeEventListener('visibilitychange', look)
    leave()
  }
}
