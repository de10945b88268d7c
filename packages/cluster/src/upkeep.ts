import type { Durably } from '@coji/durably-core'

export const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000
const AT_ONCE = 500

/** Removes what is old, so many at a time until there is no more of it. */
export async function removeAll(remove: (limit: number) => Promise<number>): Promise<number> {
  let removed = 0
  for (;;) {
    const some = await remove(AT_ONCE)
    removed += some
    if (some < AT_ONCE) return removed
  }
}

/** Does so at the first call, and once an hour from then on. */
export function hourly(durably: Durably, remove: (limit: number) => Promise<number>) {
  const { clock } = durably.drafts.environment
  let doneAt = Number.NEGATIVE_INFINITY
  return {
    async now(): Promise<void> {
      if (clock.monotonic() - doneAt < HOUR_MS) return
      doneAt = clock.monotonic()
      await removeAll(remove)
    },
  }
}
