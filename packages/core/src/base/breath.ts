import type { Clock } from './environment'

/** How long work may go on without the event loop turning. */
const LONGEST_MS = 10

/**
 * Storages that answer within the same turn of the event loop (SQLite in the process, memory) let a worker go from
 * claim to commit to claim in microtasks alone. While it does, no timer fires, no signal and no request is handled. So
 * between two pieces of work it takes a breath: nothing, as long as the event loop turns by itself.
 */
export function createBreath(clock: Clock): () => Promise<void> | undefined {
  const { turn } = clock
  if (turn === undefined) return () => undefined
  let heldSince: number | null = null
  let turned: Promise<void> | undefined
  return () => {
    const now = clock.monotonic()
    if (heldSince !== null) return now - heldSince < LONGEST_MS ? undefined : turned
    heldSince = now
    turned = turn().then(() => {
      heldSince = null
    })
    return undefined
  }
}
