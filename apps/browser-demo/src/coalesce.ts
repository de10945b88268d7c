/** A task that takes longer also comes less often: it takes at most this part of the time. */
const LARGEST_PART = 0.15

/**
 * Runs a task soon after it was asked for, never twice at once and never more often than `everyMs`, however often it
 * is asked for. What is asked for while it runs is done afterwards.
 */
export function coalesce(everyMs: number, task: () => Promise<void>): () => void {
  let isWanted = false
  let isBusy = false
  let notBefore = 0

  async function work(): Promise<void> {
    isWanted = false
    const begun = performance.now()
    try {
      await task()
    } finally {
      const took = performance.now() - begun
      notBefore = begun + Math.max(everyMs, took / LARGEST_PART)
      isBusy = false
      if (isWanted) arrange()
    }
  }

  function arrange(): void {
    isBusy = true
    setTimeout(() => void work(), Math.max(0, notBefore - performance.now()))
  }

  return () => {
    isWanted = true
    if (!isBusy) arrange()
  }
}
