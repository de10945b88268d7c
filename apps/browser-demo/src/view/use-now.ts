import { useSyncExternalStore } from 'react'

const TICK_MS = 250

/** One clock for the whole page: what shows a time in two places shows the same. */
const listeners = new Set<() => void>()
let now = Date.now()
let timer: ReturnType<typeof setInterval> | undefined

function tick(): void {
  now = Date.now()
  for (const listener of listeners) listener()
}

function subscribe(listener: () => void): () => void {
  if (listeners.size === 0) timer = setInterval(tick, TICK_MS)
  listeners.add(listener)
  return () => {
    listeners.delete(listener)
    if (listeners.size === 0) clearInterval(timer)
  }
}

function doNotSubscribe(): () => void {
  return () => {}
}

/** The time, in steps of so many milliseconds; whoever needs none gets 0, and is not drawn again for it. */
export function useNow(everyMs: number | null = TICK_MS): number {
  const part = () => (everyMs === null ? 0 : Math.floor(now / everyMs) * everyMs)
  return useSyncExternalStore(everyMs === null ? doNotSubscribe : subscribe, part)
}

/** The time for what changes with it until the run has ended. */
export function useNowUntil(finishedAt: string | null): number {
  return useNow(finishedAt === null ? TICK_MS : null)
}
