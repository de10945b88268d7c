import { onFreeze, thawed } from './tab-visibility'

/** What becomes of waiting for a lock. */
export type LockEnd = 'released' | 'stolen' | 'called off'

interface HoldParams {
  readonly steal: boolean
  readonly onHeld: () => void
}

export interface TabLock {
  /** Waits for the lock, or takes it away from who has it, and holds it until `release()`. */
  hold(params: HoldParams): Promise<LockEnd>
  /** Ends the waiting or the holding. */
  release(): void
}

/**
 * One Web Lock: of all tabs one holds it, and whoever dies loses it. A tab that is frozen while it waits leaves the
 * queue until it thaws, or it would be given a lock it can do nothing with.
 */
export function createTabLock(name: string): TabLock {
  let release: () => void = () => {}
  return {
    async hold({ steal, onHeld }) {
      const state = { isReleased: false, isHeld: false, isFrozen: false }
      for (;;) {
        const request = requestLock({ name, steal, state, onHeld })
        release = () => {
          state.isReleased = true
          request.end()
        }
        const offFreeze = onFreeze(() => {
          if (state.isHeld) return
          state.isFrozen = true
          request.end()
        })
        const end = await request.ended.finally(offFreeze)
        if (!state.isFrozen || state.isReleased || end !== 'called off') return end
        await thawed()
        state.isFrozen = false
        if (state.isReleased) return end
      }
    },
    release: () => release(),
  }
}

interface RequestParams extends HoldParams {
  readonly name: string
  readonly state: { isReleased: boolean; isHeld: boolean }
}

function requestLock({ name, steal, state, onHeld }: RequestParams) {
  const waiting = new AbortController()
  let letGo: () => void = () => {}
  const held = new Promise<void>((resolve) => {
    letGo = resolve
  })
  const ended = navigator.locks
    .request(name, steal ? { steal } : { signal: waiting.signal }, () => {
      state.isHeld = true
      if (!state.isReleased) onHeld()
      return held
    })
    .then(
      (): LockEnd => 'released',
      (error: unknown): LockEnd => {
        if (!state.isHeld && waiting.signal.aborted) return 'called off'
        if (state.isReleased) return 'released'
        if (state.isHeld && isAbort(error)) return 'stolen'
        throw error
      },
    )
  return {
    ended,
    end() {
      letGo()
      if (!state.isHeld) waiting.abort()
    },
  }
}

function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError'
}
