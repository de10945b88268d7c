/** What becomes of waiting for a lock. */
export type LockEnd = 'released' | 'stolen' | 'called off'

export interface TabLock {
  /** Waits for the lock, or takes it away from who has it, and holds it until `release()`. */
  hold(options: { readonly steal: boolean; readonly onHeld: () => void }): Promise<LockEnd>
  /** Ends the waiting or the holding. */
  release(): void
}

/** One Web Lock: of all tabs one holds it, and whoever dies loses it. */
export function createTabLock(name: string): TabLock {
  let release: () => void = () => {}
  return {
    async hold({ steal, onHeld }) {
      const waiting = new AbortController()
      let isHeld = false
      let isReleased = false
      let letGo: () => void = () => {}
      const held = new Promise<void>((resolve) => {
        letGo = resolve
      })
      release = () => {
        isReleased = true
        letGo()
        if (!isHeld) waiting.abort()
      }
      try {
        await navigator.locks.request(name, steal ? { steal } : { signal: waiting.signal }, () => {
          isHeld = true
          if (!isReleased) onHeld()
          return held
        })
        return 'released'
      } catch (error) {
        if (isReleased) return isHeld ? 'released' : 'called off'
        if (isHeld && isAbort(error)) return 'stolen'
        throw error
      }
    },
    release: () => release(),
  }
}

function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError'
}
