import { awake, onSleep } from './tab-visibility'

/** What becomes of waiting for a lock. */
export type LockEnd = 'released' | 'stolen' | 'called off'

interface HoldParams {
  readonly steal: boolean
  /** Called again when the page slept and has the lock back. */
  readonly onHeld: () => void
}

export interface TabLock {
  /** Waits for the lock, or takes it away from who has it, and holds it until `release()`. */
  hold(params: HoldParams): Promise<LockEnd>
  /** Ends the waiting or the holding. */
  release(): void
}

/** To wait in the queue, to take it from its holder, or to have it only if nobody else has. */
type Way = 'wait' | 'steal' | 'if free'

/**
 * One Web Lock: of all tabs one holds it, and whoever dies loses it. A page that is put to sleep can do nothing with a
 * lock: it leaves the queue until it is awake again, or lets go of the lock and has it back if nobody took it meanwhile.
 */
export function createTabLock(name: string): TabLock {
  let release: () => void = () => {}
  return {
    async hold({ steal, onHeld }) {
      let way: Way = steal ? 'steal' : 'wait'
      let isReleased = false
      for (;;) {
        let isAsleep = false
        const request = requestLock(name, way, () => {
          if (!isReleased && !isAsleep) onHeld()
        })
        release = () => {
          isReleased = true
          request.end()
        }
        const offSleep = onSleep(() => {
          isAsleep = true
          request.end()
        })
        const end = await request.ended.finally(offSleep)
        if (!isAsleep || isReleased) return end
        await awake()
        if (isReleased) return end
        way = end === 'called off' ? 'wait' : 'if free'
      }
    },
    release: () => release(),
  }
}

function requestLock(name: string, way: Way, onHeld: () => void) {
  const waiting = new AbortController()
  let isHeld = false
  let isEnded = false
  let letGo: () => void = () => {}
  const held = new Promise<LockEnd>((resolve) => {
    letGo = () => resolve('released')
  })
  const ended = navigator.locks
    .request(name, optionsFor(way, waiting.signal), (lock) => {
      if (lock === null) return 'stolen'
      isHeld = true
      onHeld()
      return held
    })
    .catch((error: unknown): LockEnd => {
      if (!isHeld && waiting.signal.aborted) return 'called off'
      if (isEnded) return 'released'
      if (isHeld && isAbort(error)) return 'stolen'
      throw error
    })
  return {
    ended,
    end() {
      isEnded = true
      letGo()
      if (!isHeld) waiting.abort()
    },
  }
}

function optionsFor(way: Way, signal: AbortSignal): LockOptions {
  if (way === 'steal') return { steal: true }
  return way === 'wait' ? { signal } : { ifAvailable: true }
}

function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError'
}
