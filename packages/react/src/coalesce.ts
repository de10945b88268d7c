/** A task that takes longer also comes less often: it takes at most this part of the time. */
const LARGEST_PART = 0.15

/** A task that is asked for more often than it is done. */
export interface Coalesced {
  /** Done soon, together with whatever else is asked for until then. */
  soon(): void
  /** Done as soon as it is not being done already. */
  now(): void
  /** What was asked for and has not begun is not done. */
  callOff(): void
}

/**
 * Runs a task soon after it was asked for, never twice at once and never more often than `everyMs` unless it is urgent.
 * What is asked for while it runs is done afterwards. The task must not reject.
 */
export function coalesce(everyMs: number, task: () => Promise<void>): Coalesced {
  let isWanted = false
  let isUrgent = false
  let isBusy = false
  let notBefore = 0
  let timer: ReturnType<typeof setTimeout> | undefined

  async function work(): Promise<void> {
    isWanted = false
    isUrgent = false
    isBusy = true
    const begun = performance.now()
    await task()
    notBefore = begun + Math.max(everyMs, (performance.now() - begun) / LARGEST_PART)
    isBusy = false
    if (isWanted) arrange()
  }

  function arrange(): void {
    if (isBusy) return
    clearTimeout(timer)
    timer = setTimeout(() => void work(), isUrgent ? 0 : Math.max(0, notBefore - performance.now()))
  }

  function soon(): void {
    isWanted = true
    arrange()
  }

  return {
    soon,
    now() {
      isUrgent = true
      soon()
    },
    callOff() {
      isWanted = false
      clearTimeout(timer)
    },
  }
}
