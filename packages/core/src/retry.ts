/** How long a run waits after the n-th crash in a row without progress (n = its new `crashCount`). */
export const CRASH_BACKOFF = { baseMs: 1000, capMs: 60_000 } as const

/** The first crash costs no time; from the second on 2 s, 4 s, 8 s … up to the cap. */
export function crashBackoffMs(crashCount: number): number {
  if (crashCount <= 1) return 0
  return Math.min(CRASH_BACKOFF.baseMs * 2 ** (crashCount - 1), CRASH_BACKOFF.capMs)
}
